fn main() {
    let folder = std::env::var("DEP_TENTERHOOK_LIBPYTHON").expect("tenterhook is a dependency");
    println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{folder}");
}
