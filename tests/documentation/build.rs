//! Makes a module of each example of the documentation.
//!
//! Answers "what does rustdoc make of an example?" as rustdoc does: what has no `main` becomes the body of a function,
//! which returns a result if the example ends with one. Not called: the doctests of each crate do that.

use std::path::{Path, PathBuf};

#[path = "src/extract.rs"]
mod extract;

use extract::{DOCUMENTATION, Example};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed=src/extract.rs");
    println!("cargo::rerun-if-changed=build.rs");
    for part in DOCUMENTATION {
        println!("cargo::rerun-if-changed=../../{part}");
    }
    let mut modules = String::new();
    for example in extract::examples(&root).iter().filter(|example| !example.is_inner()) {
        let file = out.join(format!("{}.rs", name(example)));
        std::fs::write(&file, source(example)).expect("the folder of the build is writable");
        modules += &format!("#[path = {:?}]\nmod {};\n", file.display().to_string(), name(example));
    }
    std::fs::write(out.join("examples.rs"), modules).expect("the folder of the build is writable");
}

/// `src_informer_rs_line_12`.
fn name(example: &Example) -> String {
    let file: String = example.file.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    format!("{}_line_{}", file.to_lowercase(), example.line)
}

fn source(example: &Example) -> String {
    let code = example.code();
    if code.contains("fn main(") {
        return code;
    }
    if code.trim_end().ends_with("(())") {
        return format!("fn example() -> Result<(), impl std::fmt::Debug> {{\n{code}}}\n");
    }
    format!("fn example() {{\n{code}}}\n")
}
