//! The name by which programs ask the dynamic linker for the library.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libiotomy-ports.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
