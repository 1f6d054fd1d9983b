module mintmark/benchmarks/load

go 1.21
