//! Sets `cfg(avx)` and `cfg(neon)`: the processors and the compilers that `codec/simd.rs` has kernels for.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let (processor, order) = (var("CARGO_CFG_TARGET_ARCH"), var("CARGO_CFG_TARGET_ENDIAN"));
    // Functions that need an instruction set are safe to write since Rust 1.86, most instructions safe to call since
    // 1.87, and those of AVX-512 stable since 1.89.
    let is_new = autocfg::new().probe_rustc_version(1, 89);
    for (name, is_here) in [
        ("avx", processor.as_deref() == Ok("x86_64")),
        ("neon", processor.as_deref() == Ok("aarch64") && order.as_deref() == Ok("little")),
    ] {
        autocfg::emit_possibility(name);
        if is_here && is_new {
            autocfg::emit(name);
        }
    }
}
