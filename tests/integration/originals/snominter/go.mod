module mintage/tests/snominter

go 1.21

require github.com/muyo/sno v1.2.1
