//! Compiles the functions of `myia_relay.h` with the C compiler, `$CC` or `cc`, into a static library.

use std::{env, fs, path::PathBuf, process::Command};

fn main() {
    println!("cargo:rerun-if-env-changed=MYIA_RELAY_INCLUDE");
    let include = env::var("MYIA_RELAY_INCLUDE")
        .expect("set MYIA_RELAY_INCLUDE to the folder that `python -m myia_relay include` prints");
    println!("cargo:rerun-if-changed={include}/myia_relay.h");
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    let (source, object, archive) = (out.join("header.c"), out.join("header.o"), out.join("libmyia_relay.a"));
    fs::write(&source, "#define MYIA_RELAY_IMPLEMENTATION\n#include \"myia_relay.h\"\n").unwrap();
    let run = |command: &mut Command| {
        let status = command.status().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        assert!(status.success(), "{command:?} failed");
    };
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    run(Command::new(compiler).args(["-std=gnu99", "-O3", "-fPIC", "-c"]).arg("-I").arg(include).arg(&source).arg("-o").arg(&object));
    run(Command::new(env::var("AR").unwrap_or_else(|_| "ar".into())).arg("crs").arg(&archive).arg(&object));
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=myia_relay");
    println!("cargo:rustc-link-lib=m");
}
