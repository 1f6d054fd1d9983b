module mintage/benchmarks/goconstant

go 1.21
