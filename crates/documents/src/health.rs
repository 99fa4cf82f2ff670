//! `/healthz`, `/livez`, `/readyz`: the checks, all or one by one, in kube-apiserver's text.
//!
//! In: checks from whoever has something to say. Out: text and whether all is well. Nobody without
//! credentials is told why a check failed: kube-apiserver tells whoever may get `/livez/etcd`, which there is
//! a right of its own, and here open to everyone.
//!
//! Source: apiserver v1.36.3 `server/healthz/healthz.go`.

use std::sync::Arc;

use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::options::Query;

use crate::slis::Slis;

/// One thing that can be well or not.
#[derive(Clone)]
pub struct Check {
    /// `etcd`, `informer-sync`.
    pub name: String,
    pub endpoints: Endpoints,
    /// What is wrong, for the log; quick, as it runs at every request.
    pub run: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// Instead of a reason.
const WITHHELD: &str = "reason withheld";

/// Which endpoints ask a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoints {
    All,
    /// Only `/readyz`.
    Ready,
    /// All but `/livez`.
    NotLive,
}

impl Endpoints {
    fn have(self, endpoint: Endpoint) -> bool {
        match self {
            Endpoints::All => true,
            Endpoints::Ready => endpoint == Endpoint::Readyz,
            Endpoints::NotLive => endpoint != Endpoint::Livez,
        }
    }
}

/// The three endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Healthz,
    Livez,
    Readyz,
}

/// What an endpoint answers.
#[derive(Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// All is well.
    Well(String),
    /// Something is not.
    Ill(String),
    /// The one check that was asked has failed, for this reason: see [`Reasons::tell`].
    Failed(String),
    /// There is no such check.
    Unknown,
}

/// Whether whoever asks is told why a check failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reasons {
    Told,
    Withheld,
}

impl Reasons {
    /// What is answered when a check has failed.
    pub fn tell(self, why: &str) -> String {
        let told = if self == Reasons::Told { why } else { WITHHELD };
        format!("internal server error: {told}\n")
    }
}

/// All checks, in order, and how they went.
#[derive(Clone)]
pub struct Checks(Arc<[Check]>, Arc<Slis>);

impl Check {
    pub fn new(
        name: impl Into<String>,
        endpoints: Endpoints,
        run: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Check {
        Check { name: name.into(), endpoints, run: Arc::new(run) }
    }
}

impl Endpoint {
    /// The endpoint that a path begins with, and the check that it names.
    pub fn of(path: &str) -> Option<(Endpoint, Option<&str>)> {
        let path = path.strip_prefix('/')?;
        let (first, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
        let endpoint = match first {
            "healthz" => Endpoint::Healthz,
            "livez" => Endpoint::Livez,
            "readyz" => Endpoint::Readyz,
            _ => return None,
        };
        Some((endpoint, rest))
    }

    pub const fn name(self) -> &'static str {
        match self {
            Endpoint::Healthz => "healthz",
            Endpoint::Livez => "livez",
            Endpoint::Readyz => "readyz",
        }
    }
}

impl Checks {
    pub fn new(checks: Vec<Check>) -> Checks {
        Checks(checks.into(), Arc::default())
    }

    /// Asks one check, or all. Of all together nobody is told the reasons.
    pub fn ask(&self, endpoint: Endpoint, one: Option<&str>, query: &Query) -> CheckResult {
        let mut asked = self.0.iter().filter(|check| check.endpoints.have(endpoint));
        match one {
            None => all(endpoint, asked, query, &self.1),
            Some(name) => match asked.find(|check| check.name == name) {
                None => CheckResult::Unknown,
                Some(check) => match (check.run)() {
                    Ok(()) => CheckResult::Well("ok".into()),
                    Err(why) => {
                        tracing::warn!(check = check.name, why, "health check failed");
                        CheckResult::Failed(why)
                    }
                },
            },
        }
    }

    /// How all of them went so far.
    pub fn slis(&self) -> &Slis {
        &self.1
    }

    /// `/healthz/ping` and so on, for the list of paths.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for endpoint in [Endpoint::Healthz, Endpoint::Livez, Endpoint::Readyz] {
            paths.push(format!("/{}", endpoint.name()));
            let asked = self.0.iter().filter(|check| check.endpoints.have(endpoint));
            paths.extend(asked.map(|check| format!("/{}/{}", endpoint.name(), check.name)));
        }
        paths
    }
}

fn all<'c>(
    endpoint: Endpoint,
    checks: impl Iterator<Item = &'c Check>,
    query: &Query,
    slis: &Slis,
) -> CheckResult {
    let mut excluded: Vec<&str> = query.all("exclude").collect();
    let (mut text, mut failed) = (String::new(), Vec::new());
    for check in checks {
        let before = excluded.len();
        excluded.retain(|name| *name != check.name);
        if excluded.len() < before {
            text.push_str(&format!("[+]{} excluded: ok\n", check.name));
            continue;
        }
        let came_to = (check.run)();
        slis.observe(&check.name, endpoint.name(), came_to.is_ok());
        match came_to {
            Ok(()) => text.push_str(&format!("[+]{} ok\n", check.name)),
            Err(why) => {
                tracing::warn!(check = check.name, why, "health check failed");
                text.push_str(&format!("[-]{} failed: {WITHHELD}\n", check.name));
                failed.push(&check.name);
            }
        }
    }
    if !excluded.is_empty() {
        let names: Vec<String> = excluded.iter().map(|name| go_quote(name)).collect();
        text.push_str(&format!(
            "warn: some health checks cannot be excluded: no matches for {}\n",
            names.join(",")
        ));
    }
    let name = endpoint.name();
    if !failed.is_empty() {
        return CheckResult::Ill(format!("{text}{name} check failed\n"));
    }
    if query.first("verbose").is_none() {
        return CheckResult::Well("ok".into());
    }
    CheckResult::Well(format!("{text}{name} check passed\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks() -> Checks {
        Checks::new(vec![
            Check::new("ping", Endpoints::All, || Ok(())),
            Check::new("etcd", Endpoints::All, || Ok(())),
            Check::new("shutdown", Endpoints::Ready, || Err("leaving".into())),
            Check::new("kms-providers", Endpoints::NotLive, || Ok(())),
        ])
    }

    fn ask(target: &str) -> CheckResult {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (endpoint, one) = Endpoint::of(path).expect("an endpoint");
        checks().ask(endpoint, one, &Query::parse(query))
    }

    #[test]
    fn checks_are_told_in_kube_apiservers_text() {
        let well = |text: &str| CheckResult::Well(text.into());
        let ill = |text: &str| CheckResult::Ill(text.into());
        assert_eq!(ask("/livez"), well("ok"));
        assert_eq!(ask("/livez?verbose"), well("[+]ping ok\n[+]etcd ok\nlivez check passed\n"));
        assert_eq!(
            ask("/healthz?verbose=1&exclude=ping&exclude=nope"),
            well(
                "[+]ping excluded: ok\n[+]etcd ok\n[+]kms-providers ok\nwarn: some health checks cannot be excluded: no matches for \
                 \"nope\"\nhealthz check passed\n"
            )
        );
        assert_eq!(
            ask("/readyz"),
            ill(
                "[+]ping ok\n[+]etcd ok\n[-]shutdown failed: reason withheld\n[+]kms-providers ok\nreadyz check failed\n"
            )
        );
        assert_eq!(ask("/readyz?exclude=shutdown"), well("ok"));
        assert_eq!(ask("/readyz/shutdown"), CheckResult::Failed("leaving".into()));
        assert_eq!(Reasons::Told.tell("leaving"), "internal server error: leaving\n");
        assert_eq!(Reasons::Withheld.tell("leaving"), "internal server error: reason withheld\n");
        assert_eq!(ask("/readyz/etcd"), well("ok"));
        assert_eq!(ask("/livez/shutdown"), CheckResult::Unknown);
        assert_eq!(ask("/livez/kms-providers"), CheckResult::Unknown);
        assert_eq!(ask("/healthz/kms-providers"), well("ok"));
        assert_eq!(ask("/livez/"), CheckResult::Unknown);
        assert_eq!(Endpoint::of("/readyzz"), None);
        assert_eq!(checks().paths().len(), 12);
    }
}
