package main

/*
#cgo LDFLAGS: -lm -ldl
#define MYIA_RELAY_IMPLEMENTATION
#include "myia_relay.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Error is what went wrong: a code of myia_relay.h, and a message with the place.
type Error struct {
	Code    int
	Message string
}

func (e *Error) Error() string { return e.Message }

// Value is an argument or a result, as the library describes it; a size of -1 is any.
type Value struct {
	Name, DType string
	ItemSize    int
	Shape       []int64
}

// Array has the elements of an array, row-major, as bytes of this machine's order.
type Array struct {
	Data  []byte
	Shape []int64
}

// Library is a loaded library, which one goroutine uses at a time.
type Library struct{ program *C.myia_relay_program }

// Load opens a shared object that relay.export_library wrote.
func Load(path string) (*Library, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	library := &Library{}
	if code := C.myia_relay_load(name, &library.program); code != 0 {
		return nil, &Error{int(code), C.GoString(C.myia_relay_message(nil))}
	}
	runtime.SetFinalizer(library, (*Library).Close)
	return library, nil
}

// Close frees the library; it may be called more than once.
func (l *Library) Close() {
	C.myia_relay_close(l.program)
	l.program = nil
}

// Name is that of the function, Target the machine that it was compiled for.
func (l *Library) Name() string   { return C.GoString(C.myia_relay_name(l.program)) }
func (l *Library) Target() string { return C.GoString(C.myia_relay_target(l.program)) }

func sizes(at *C.int64_t, ndim C.int) []int64 {
	shape := make([]int64, int(ndim))
	for k := range shape {
		shape[k] = int64(*(*C.int64_t)(unsafe.Add(unsafe.Pointer(at), 8*k)))
	}
	return shape
}

func value(v *C.myia_relay_value) Value {
	return Value{C.GoString(v.name), C.GoString(v.dtype), int(v.itemsize), sizes(v.shape, v.ndim)}
}

// Inputs are the arguments, Outputs the results.
func (l *Library) Inputs() []Value {
	values := make([]Value, int(C.myia_relay_inputs(l.program)))
	for k := range values {
		values[k] = value(C.myia_relay_input(l.program, C.int(k)))
	}
	return values
}

func (l *Library) Outputs() []Value {
	values := make([]Value, int(C.myia_relay_outputs(l.program)))
	for k := range values {
		values[k] = value(C.myia_relay_output(l.program, C.int(k)))
	}
	return values
}

// Run runs the library. The sizes of the arguments are checked here, so that nothing reads beyond them. They are copied to
// memory of C, which Go's collector does not move.
func (l *Library) Run(arguments []Array) ([]Array, error) {
	defer runtime.KeepAlive(l)
	inputs, outputs := l.Inputs(), l.Outputs()
	if len(arguments) != len(inputs) {
		return nil, &Error{2, fmt.Sprintf("%s takes %d arguments, not %d", l.Name(), len(inputs), len(arguments))}
	}
	given := (*C.myia_relay_array)(C.calloc(C.size_t(len(inputs)+1), C.sizeof_myia_relay_array))
	made := (*C.myia_relay_array)(C.calloc(C.size_t(len(outputs)+1), C.sizeof_myia_relay_array))
	defer C.free(unsafe.Pointer(given))
	defer C.free(unsafe.Pointer(made))
	for k, a := range arguments {
		bytes := int64(inputs[k].ItemSize)
		shape := (*C.int64_t)(C.calloc(C.size_t(len(a.Shape)+1), 8))
		defer C.free(unsafe.Pointer(shape))
		for axis, size := range a.Shape {
			bytes *= size
			*(*C.int64_t)(unsafe.Add(unsafe.Pointer(shape), 8*axis)) = C.int64_t(size)
		}
		if bytes != int64(len(a.Data)) {
			return nil, &Error{2, fmt.Sprintf("%s has %d bytes, not those of %v", inputs[k].Name, len(a.Data), a.Shape)}
		}
		data := C.CBytes(a.Data)
		defer C.free(data)
		*(*C.myia_relay_array)(unsafe.Add(unsafe.Pointer(given), k*C.sizeof_myia_relay_array)) =
			C.myia_relay_array{data: data, ndim: C.int(len(a.Shape)), shape: shape}
	}
	if code := C.myia_relay_run(l.program, given, made); code != 0 {
		return nil, &Error{int(code), C.GoString(C.myia_relay_message(l.program))}
	}
	results := make([]Array, len(outputs))
	for k := range results {
		a := (*C.myia_relay_array)(unsafe.Add(unsafe.Pointer(made), k*C.sizeof_myia_relay_array))
		bytes, shape := outputs[k].ItemSize, sizes(a.shape, a.ndim)
		for _, size := range shape {
			bytes *= int(size)
		}
		results[k] = Array{C.GoBytes(a.data, C.int(bytes)), shape}
	}
	return results, nil
}
