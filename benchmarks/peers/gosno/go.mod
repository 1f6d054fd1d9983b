module mintage/benchmarks/gosno

go 1.21

require github.com/muyo/sno v1.2.1
