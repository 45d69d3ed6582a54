//! Links libpython for the binary and the tests, and packs the Python side into the crate.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
    pyo3_build_config::add_libpython_rpath_link_args();
    // The build scripts of dependents read it as `DEP_TENTERHOOK_LIBPYTHON`: link arguments do not reach them.
    println!("cargo::metadata=libpython={}", pyo3_build_config::get().lib_dir().unwrap_or_default());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=python/tenterhook");

    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(&root.join("python/tenterhook"), &mut files);
    files.sort();

    let mut table = String::from("&[\n");
    for file in &files {
        let inside = file.strip_prefix(root.join("python")).expect("collected below python/");
        writeln!(
            table,
            "    ({:?}, include_str!({:?})),",
            inside.to_str().expect("file names of ours are UTF-8"),
            file.to_str().expect("the checkout's path is UTF-8")
        )
        .expect("a string takes all");
    }
    table.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("python_side.rs"), table).expect("OUT_DIR is writable");
}

/// Gathers the `.py` and `.pyi` files below `folder`.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("python/tenterhook is readable") {
        let path = entry.expect("python/tenterhook is readable").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|kind| kind == "py" || kind == "pyi") {
            files.push(path);
        }
    }
}
