//! The Python client that tests use: installed once into an environment of its own, outside the repository.
//!
//! In: `tools/peers/python-36/requirements.txt`, a `python3` with `venv`. Out: an interpreter that finds the
//! client, and whether there is one. Never: a package of the machine's own Python seen or changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::{self, Done};

const FOLDER: &str = "python-36";

/// What a machine without it is told.
const ABSENT: &str = "no python3 with venv and pip is in PATH (Debian: python3-venv)";

/// Returns the interpreter if the client is installed as the requirements say.
pub fn located(cache: &Path) -> Result<Option<PathBuf>, String> {
    let plan = Plan::read(cache)?;
    Ok(plan.is_made().then(|| plan.interpreter()))
}

/// Installs the client if it is not there. A machine without Python is told so and goes on, save in a CI run.
pub fn ensure(cache: &Path) -> Done {
    let plan = Plan::read(cache)?;
    if plan.is_made() {
        return Ok(());
    }
    match (is_there(), run::in_ci()) {
        (true, _) => plan.make(),
        (false, true) => Err(format!("the tests of the Python client need Python: {ABSENT}")),
        (false, false) => {
            eprintln!("{ABSENT}: the tests of the Python client will be left out");
            Ok(())
        }
    }
}

struct Plan {
    home: PathBuf,
    /// What decides the result, kept as `home/recipe` once the environment is whole.
    recipe: String,
    requirements: PathBuf,
}

impl Plan {
    fn read(cache: &Path) -> Result<Plan, String> {
        let requirements = run::root().join("tools/peers").join(FOLDER).join("requirements.txt");
        let recipe = fs::read_to_string(&requirements).map_err(|e| io("read", &requirements, &e))?;
        Ok(Plan { home: cache.join(FOLDER), recipe, requirements })
    }

    fn interpreter(&self) -> PathBuf {
        self.home.join("venv/bin/python")
    }

    fn is_made(&self) -> bool {
        fs::read_to_string(self.home.join("recipe")).is_ok_and(|made| made == self.recipe)
            && self.interpreter().exists()
    }

    /// The recipe is written last, so an installation that was cut short is made again.
    fn make(&self) -> Done {
        eprintln!("installing the Python client");
        let (venv, stamp) = (self.home.join("venv"), self.home.join("recipe"));
        fs::create_dir_all(&self.home).map_err(|e| io("create", &self.home, &e))?;
        run::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
        let mut install = Command::new(self.interpreter());
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        install.args(["--only-binary", ":all:", "--requirement"]).arg(&self.requirements);
        run::run(&mut install)?;
        fs::write(&stamp, &self.recipe).map_err(|e| io("write", &stamp, &e))
    }
}

/// Whether environments can be made; Debian ships a Python that cannot.
fn is_there() -> bool {
    let mut command = Command::new("python3");
    command.args(["-c", "import venv, ensurepip"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn io(what: &str, path: &Path, why: &std::io::Error) -> String {
    format!("cannot {what} {}: {why}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_is_of_one_version() {
        let plan = Plan::read(Path::new("cache")).unwrap();
        let lines: Vec<&str> = plan.recipe.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(lines[0].starts_with("kubernetes==36."), "{}", lines[0]);
        for line in lines {
            let pinned = line.split_once("==").is_some_and(|(_, version)| version.chars().all(is_of_version));
            assert!(pinned, "{line}");
        }
    }

    fn is_of_version(c: char) -> bool {
        c.is_ascii_digit() || c == '.'
    }

    #[test]
    fn nothing_is_located_where_nothing_was_made() {
        assert_eq!(located(Path::new("/no/such/cache")), Ok(None));
    }
}
