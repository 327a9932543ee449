//! A library that `relay.export_library` wrote: loading it, what it says of itself, running it.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::{fmt, ptr, slice};

mod ffi {
    use super::*;

    #[repr(C)]
    pub struct Program {
        _private: [u8; 0],
    }

    #[repr(C)]
    pub struct Value {
        pub name: *const c_char,
        pub dtype: *const c_char,
        pub itemsize: usize,
        pub ndim: c_int,
        pub shape: *const i64,
    }

    #[repr(C)]
    pub struct Array {
        pub data: *mut c_void,
        pub dtype: *const c_char,
        pub ndim: c_int,
        pub shape: *const i64,
    }

    extern "C" {
        pub fn myia_relay_load(path: *const c_char, program: *mut *mut Program) -> c_int;
        pub fn myia_relay_close(program: *mut Program);
        pub fn myia_relay_name(program: *const Program) -> *const c_char;
        pub fn myia_relay_target(program: *const Program) -> *const c_char;
        pub fn myia_relay_inputs(program: *const Program) -> c_int;
        pub fn myia_relay_outputs(program: *const Program) -> c_int;
        pub fn myia_relay_input(program: *const Program, k: c_int) -> *const Value;
        pub fn myia_relay_output(program: *const Program, k: c_int) -> *const Value;
        pub fn myia_relay_run(program: *mut Program, inputs: *const Array, outputs: *mut Array) -> c_int;
        pub fn myia_relay_message(program: *const Program) -> *const c_char;
    }
}

/// What went wrong: a code of `myia_relay.h`, and a message with the place.
#[derive(Debug)]
pub struct Error {
    pub code: i32,
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// An argument or a result, as the library describes it; a size of -1 is any.
#[derive(Debug)]
pub struct Value {
    pub name: String,
    pub dtype: String,
    pub itemsize: usize,
    pub shape: Vec<i64>,
}

/// The elements of an array, row-major, as bytes of this machine's order.
#[derive(Debug, Clone)]
pub struct Array {
    pub data: Vec<u8>,
    pub shape: Vec<i64>,
}

/// A loaded library. It may move to another thread, and is used by one at a time: `run` borrows it mutably.
pub struct Library(*mut ffi::Program);

unsafe impl Send for Library {}

fn text(at: *const c_char) -> String {
    unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned()
}

fn value(at: *const ffi::Value) -> Value {
    let v = unsafe { &*at };
    let shape = if v.ndim == 0 { vec![] } else { unsafe { slice::from_raw_parts(v.shape, v.ndim as usize) }.to_vec() };
    Value { name: text(v.name), dtype: text(v.dtype), itemsize: v.itemsize, shape }
}

impl Library {
    /// Open a shared object.
    pub fn load(path: &str) -> Result<Library, Error> {
        let name = CString::new(path).map_err(|e| Error { code: 1, message: e.to_string() })?;
        let mut program = ptr::null_mut();
        match unsafe { ffi::myia_relay_load(name.as_ptr(), &mut program) } {
            0 => Ok(Library(program)),
            code => Err(Error { code, message: text(unsafe { ffi::myia_relay_message(ptr::null()) }) }),
        }
    }

    pub fn name(&self) -> String {
        text(unsafe { ffi::myia_relay_name(self.0) })
    }

    pub fn target(&self) -> String {
        text(unsafe { ffi::myia_relay_target(self.0) })
    }

    pub fn inputs(&self) -> Vec<Value> {
        unsafe { (0..ffi::myia_relay_inputs(self.0)).map(|k| value(ffi::myia_relay_input(self.0, k))).collect() }
    }

    pub fn outputs(&self) -> Vec<Value> {
        unsafe { (0..ffi::myia_relay_outputs(self.0)).map(|k| value(ffi::myia_relay_output(self.0, k))).collect() }
    }

    /// Run it. The sizes of the arguments are checked here against what the library wants, so that nothing reads beyond them.
    pub fn run(&mut self, arguments: &[Array]) -> Result<Vec<Array>, Error> {
        let (inputs, outputs) = (self.inputs(), self.outputs());
        let wrong = |message: String| Err(Error { code: 2, message });
        if arguments.len() != inputs.len() {
            return wrong(format!("{} takes {} arguments, not {}", self.name(), inputs.len(), arguments.len()));
        }
        for (given, wanted) in arguments.iter().zip(&inputs) {
            let count: i64 = given.shape.iter().product();
            if given.data.len() as i64 != count * wanted.itemsize as i64 {
                return wrong(format!("{} has {} bytes, not those of {:?}", wanted.name, given.data.len(), given.shape));
            }
        }
        let given: Vec<ffi::Array> = arguments
            .iter()
            .map(|a| ffi::Array {
                data: a.data.as_ptr() as *mut c_void, // which the program only reads
                dtype: ptr::null(),
                ndim: a.shape.len() as c_int,
                shape: a.shape.as_ptr(),
            })
            .collect();
        let empty = || ffi::Array { data: ptr::null_mut(), dtype: ptr::null(), ndim: 0, shape: ptr::null() };
        let mut made: Vec<ffi::Array> = outputs.iter().map(|_| empty()).collect();
        let code = unsafe { ffi::myia_relay_run(self.0, given.as_ptr(), made.as_mut_ptr()) };
        if code != 0 {
            return Err(Error { code, message: text(unsafe { ffi::myia_relay_message(self.0) }) });
        }
        let copied = made.iter().zip(&outputs).map(|(a, v)| unsafe {
            let shape = if a.ndim == 0 { vec![] } else { slice::from_raw_parts(a.shape, a.ndim as usize).to_vec() };
            let bytes = shape.iter().product::<i64>() as usize * v.itemsize;
            let data = if bytes == 0 { vec![] } else { slice::from_raw_parts(a.data as *const u8, bytes).to_vec() };
            Array { data, shape }
        });
        Ok(copied.collect())
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        unsafe { ffi::myia_relay_close(self.0) }
    }
}
