//! Compiles the worker program of the experiment `files`, once per backend for its system calls.
//!
//! If the compiler or library of a backend is missing, the backend is left out and the experiment
//! prints the reason. This never fails the build.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "src/files/worker/worker.c";

/// The variants: a name, the compiler (empty for the default one), and its options.
const VARIANTS: &[(&str, &str, &[&str])] = &[
    ("libc", "", &[]),
    ("static", "", &["-static"]),
    ("musl", "musl-gcc", &["-static"]),
    ("raw", "", &["-DRAW"]),
    ("io-uring", "", &["-DRING"]),
];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts"));
    let usual = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    for (name, compiler, options) in VARIANTS {
        let compiler = if compiler.is_empty() { &usual } else { *compiler };
        let program = out.join(format!("worker-{name}"));
        let reason = compile(compiler, options, &program).err().unwrap_or_default();
        if !reason.is_empty() {
            fs::write(&program, "").expect("OUT_DIR can be written");
        }
        fs::write(out.join(format!("worker-{name}.reason")), reason)
            .expect("OUT_DIR can be written");
    }
    println!("cargo:rerun-if-changed=src/files/worker");
    println!("cargo:rerun-if-env-changed=CC");
}

fn compile(compiler: &str, options: &[&str], program: &Path) -> Result<(), String> {
    let mut command = Command::new(compiler);
    command.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-pthread", "-s"]).args(options);
    let output = command.arg(SOURCE).arg("-o").arg(program).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let line = stderr.lines().find(|line| line.contains("error")).or(stderr.lines().next());
            Err(format!(
                "{compiler} could not compile it when iotomy was built: {}",
                line.unwrap_or("it said nothing").trim()
            ))
        }
        Err(error) => Err(format!("{compiler} was not there when iotomy was built: {error}")),
    }
}
