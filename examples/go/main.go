// Says what a library is, and runs it: run_library lenet.so image.raw, run_library f.so x.raw:3,4 n.raw.
//
// Prints the arguments and results, then the elements of the results, one in a line. The exit status is the code of the error.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func describe(what string, v Value) {
	shape := strings.ReplaceAll(strings.Trim(fmt.Sprint(v.Shape), "[]"), " ", ", ")
	fmt.Printf("# %s %s: %s[%s]\n", what, v.Name, v.DType, shape)
}

// read gets an array from a file: x.raw, or x.raw:3,4.
func read(text string, wanted Value) (Array, error) {
	path, tail, given := strings.Cut(text, ":")
	shape := wanted.Shape
	if given {
		shape = nil
		for _, size := range strings.Split(tail, ",") {
			n, err := strconv.ParseInt(size, 10, 64)
			if err != nil {
				return Array{}, err
			}
			shape = append(shape, n)
		}
	}
	data, err := os.ReadFile(path)
	return Array{data, shape}, err
}

// show prints the elements of a result. The order of bytes is that of every machine that libraries are made for.
func show(v Value, a Array) {
	into := map[string]any{
		"float32": new(float32), "float64": new(float64), "bool": new(uint8), "uint8": new(uint8), "int8": new(int8),
		"int16": new(int16), "int32": new(int32), "int64": new(int64),
		"uint16": new(uint16), "uint32": new(uint32), "uint64": new(uint64),
	}[v.DType]
	if into == nil {
		fmt.Println(a.Data)
		return
	}
	for reader := bytes.NewReader(a.Data); reader.Len() > 0; {
		binary.Read(reader, binary.LittleEndian, into)
		switch x := into.(type) {
		case *float32:
			fmt.Println(*x)
		case *float64:
			fmt.Println(*x)
		case *uint8:
			fmt.Println(*x)
		case *int8:
			fmt.Println(*x)
		case *int16:
			fmt.Println(*x)
		case *int32:
			fmt.Println(*x)
		case *int64:
			fmt.Println(*x)
		case *uint16:
			fmt.Println(*x)
		case *uint32:
			fmt.Println(*x)
		case *uint64:
			fmt.Println(*x)
		}
	}
}

func run() error {
	if len(os.Args) < 2 {
		return &Error{1, "usage: run_library NAME.so FILE[:SHAPE]..."}
	}
	begin := time.Now()
	library, err := Load(os.Args[1])
	if err != nil {
		return err
	}
	defer library.Close()
	milliseconds := 1e3 * time.Since(begin).Seconds()
	fmt.Printf("# %s for %s, loaded in %.1f ms\n", library.Name(), library.Target(), milliseconds)
	inputs, outputs := library.Inputs(), library.Outputs()
	for _, v := range inputs {
		describe("argument", v)
	}
	for _, v := range outputs {
		describe("result", v)
	}
	var arrays []Array
	for k, text := range os.Args[2:] {
		if k == len(inputs) {
			break
		}
		a, err := read(text, inputs[k])
		if err != nil {
			return err
		}
		arrays = append(arrays, a)
	}
	results, err := library.Run(arrays)
	for k, a := range results {
		show(outputs[k], a)
	}
	return err
}

func main() {
	if err := run(); err != nil {
		code := 2
		var problem *Error
		if errors.As(err, &problem) {
			code = problem.Code
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(code)
	}
}
