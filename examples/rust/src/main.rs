//! Says what a library is, and runs it: `run_library lenet.so image.raw`, `run_library f.so x.raw:3,4 n.raw`.
//!
//! Prints the arguments and results, then the elements of the results, one in a line. The exit status is the code of the error.

mod library;

use library::{Array, Library, Value};
use std::{env, fs, process::exit, time::Instant};

fn describe(what: &str, v: &Value) {
    let shape: Vec<String> = v.shape.iter().map(i64::to_string).collect();
    println!("# {what} {}: {}[{}]", v.name, v.dtype, shape.join(", "));
}

/// An array from a file, `x.raw` or `x.raw:3,4`.
fn read(text: &str, wanted: &Value) -> Result<Array, Box<dyn std::error::Error>> {
    let (path, shape) = match text.split_once(':') {
        Some((path, sizes)) => (path, sizes.split(',').map(str::parse).collect::<Result<Vec<i64>, _>>()?),
        None => (text, wanted.shape.clone()),
    };
    Ok(Array { data: fs::read(path).map_err(|e| format!("{path}: {e}"))?, shape })
}

/// The elements of a result, as numbers.
fn elements(v: &Value, a: &Array) -> Vec<f64> {
    let each = a.data.chunks_exact(v.itemsize);
    macro_rules! as_f64 {
        ($t:ty) => {
            each.map(|b| <$t>::from_ne_bytes(b.try_into().unwrap()) as f64).collect()
        };
    }
    match v.dtype.as_str() {
        "float32" => as_f64!(f32),
        "float64" => as_f64!(f64),
        "int8" => as_f64!(i8),
        "int16" => as_f64!(i16),
        "int32" => as_f64!(i32),
        "int64" => as_f64!(i64),
        "uint16" => as_f64!(u16),
        "uint32" => as_f64!(u32),
        "uint64" => as_f64!(u64),
        _ => a.data.iter().map(|b| *b as f64).collect(), // bool, uint8; the bytes of others
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let fail = |code: i32, message: String| -> ! {
        eprintln!("{message}");
        exit(code)
    };
    let begin = Instant::now();
    let path = arguments.first().map(String::as_str).unwrap_or("");
    let mut library = Library::load(path).unwrap_or_else(|e| fail(e.code, e.message));
    let milliseconds = 1e3 * begin.elapsed().as_secs_f64();
    println!("# {} for {}, loaded in {milliseconds:.1} ms", library.name(), library.target());
    let (inputs, outputs) = (library.inputs(), library.outputs());
    inputs.iter().for_each(|v| describe("argument", v));
    outputs.iter().for_each(|v| describe("result", v));
    let mut arrays = Vec::new();
    for (text, wanted) in arguments[1..].iter().zip(&inputs) {
        arrays.push(read(text, wanted).unwrap_or_else(|e| fail(2, e.to_string())));
    }
    match library.run(&arrays) {
        Ok(results) => {
            for (v, a) in outputs.iter().zip(&results) {
                elements(v, a).iter().for_each(|x| println!("{x}"));
            }
        }
        Err(e) => fail(e.code, e.message),
    }
}
