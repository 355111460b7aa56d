//! Writes the table of the agent libraries that the program contains. It is empty unless
//! `TENURE_EMBED_AGENTS` names a folder with them, as `./x package` does.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TENURE_EMBED_AGENTS");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut table = String::from("&[\n");
    if let Some(folder) = env::var_os("TENURE_EMBED_AGENTS").filter(|folder| !folder.is_empty()) {
        for name in ["libhprof.so", "libjvmpi.so"] {
            let library = PathBuf::from(&folder).join(name);
            println!("cargo::rerun-if-changed={}", library.display());
            fs::copy(&library, out.join(name))
                .unwrap_or_else(|error| panic!("{}: {error}", library.display()));
            table += &format!("    (\"{name}\", include_bytes!(\"{name}\")),\n");
        }
    }
    table += "]\n";
    fs::write(out.join("agents.rs"), table).expect("the build folder can be written");
}
