//! Compiles the kernel side of the `bpf` observer.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts"));
    let built = SkeletonBuilder::new()
        .source("src/bpf/trace.bpf.c")
        .obj(out.join("trace.bpf.o"))
        .clang_args(["-mcpu=v3", "-Wall", "-Werror", "-Isrc/bpf"])
        .build();
    if let Err(error) = built {
        panic!(
            "cannot compile src/bpf/trace.bpf.c: {error:#}; install clang and libelf-dev, or run `make setup`"
        );
    }
    println!("cargo:rerun-if-changed=src/bpf");
}
