//! Writes the seeds of every target to `corpus/<target>` beside the manifest, where cargo-fuzz reads its corpus.
//!
//! Answers "with which inputs does libFuzzer begin?" The files are numbered, so writing them again changes nothing.

use std::path::Path;

use actix_informer_fuzz::seeds::Target;

fn main() -> std::io::Result<()> {
    for (target, name) in Target::ALL {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        std::fs::create_dir_all(&folder)?;
        for (number, seed) in target.seeds().iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
