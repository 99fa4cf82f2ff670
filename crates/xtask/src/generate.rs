//! `cargo xtask gen`: the schema tables, made by the Go program in `crates/schema/gen` from the Kubernetes modules' types.
//!
//! In: that program and the modules it pins. Out: the files under `crates/schema/data`.
//! Never: a table left changed by `--check`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{self, Done};

// file, relative to the data directory -> its bytes
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Writes the tables; with `check`, puts back what was there and fails if that differs.
pub fn generate(check: bool) -> Done {
    run::need_go("generating the schema tables")?;
    let schema = run::root().join("crates/schema");
    let data = schema.join("data");
    let before = read(&data)?;
    let made = run::run(Command::new("go").current_dir(schema.join("gen")).args(["run", "."]));
    let after = read(&data)?;
    let changed = differences(&before, &after);
    if check || made.is_err() {
        restore(&data, &before, &after)?;
    }
    made?;
    match (check, changed.is_empty()) {
        (true, false) => Err(format!(
            "crates/schema/data is not what its generator writes; run `cargo xtask gen`:\n{}",
            changed.join("\n")
        )),
        (_, true) => said("crates/schema/data is up to date"),
        (false, false) => said(&format!("written:\n{}", changed.join("\n"))),
    }
}

fn said(text: &str) -> Done {
    println!("{text}");
    Ok(())
}

fn read(dir: &Path) -> Result<Files, String> {
    let mut files = Files::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        let Ok(entries) = fs::read_dir(&next) else { continue };
        for entry in entries {
            let path = entry.map_err(|e| format!("cannot read {}: {e}", next.display()))?.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let bytes = fs::read(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
            files.insert(path.strip_prefix(dir).unwrap_or(&path).to_owned(), bytes);
        }
    }
    Ok(files)
}

/// One line a file that only one side has or that is not the same on both.
fn differences(before: &Files, after: &Files) -> Vec<String> {
    let gone = before
        .keys()
        .filter(|path| !after.contains_key(*path))
        .map(|path| format!("  gone     {}", path.display()));
    let rest = after.iter().filter_map(|(path, bytes)| match before.get(path) {
        None => Some(format!("  new      {}", path.display())),
        Some(old) if old != bytes => Some(format!("  changed  {}", path.display())),
        Some(_) => None,
    });
    gone.chain(rest).collect()
}

fn restore(dir: &Path, before: &Files, after: &Files) -> Done {
    let failed = |path: &Path, e: std::io::Error| format!("cannot put back {}: {e}", path.display());
    for path in after.keys().filter(|path| !before.contains_key(*path)) {
        fs::remove_file(dir.join(path)).map_err(|e| failed(path, e))?;
    }
    for (path, bytes) in before.iter().filter(|(path, bytes)| after.get(*path) != Some(*bytes)) {
        fs::write(dir.join(path), bytes).map_err(|e| failed(path, e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> Files {
        list.iter().map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn differences_name_what_is_new_changed_and_gone() {
        let before = files(&[("a", "1"), ("b", "1"), ("c", "1")]);
        let after = files(&[("a", "1"), ("b", "2"), ("d", "1")]);
        assert_eq!(differences(&before, &after), ["  gone     c", "  changed  b", "  new      d"]);
        assert!(differences(&before, &before).is_empty());
    }

    #[test]
    fn a_check_leaves_the_directory_as_it_was() {
        let dir = std::env::temp_dir().join(format!("xtask-gen-{}", std::process::id()));
        fs::create_dir_all(dir.join("sub")).unwrap();
        fs::write(dir.join("kept"), "old").unwrap();
        fs::write(dir.join("sub/gone"), "old").unwrap();
        let before = read(&dir).unwrap();
        fs::write(dir.join("kept"), "new").unwrap();
        fs::write(dir.join("sub/extra"), "new").unwrap();
        fs::remove_file(dir.join("sub/gone")).unwrap();
        restore(&dir, &before, &read(&dir).unwrap()).unwrap();
        let restored = read(&dir).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(restored, before);
    }
}
