module mintmark/benchmarks/goconstant

go 1.21
