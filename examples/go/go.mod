module run_library

go 1.18
