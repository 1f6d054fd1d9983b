module mintage/benchmarks/load

go 1.21
