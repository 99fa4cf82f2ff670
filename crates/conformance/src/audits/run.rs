//! A script at both servers under one policy, and what differs in their logs.
//!
//! In: a policy, a script. Out: the requests of which not the same was noted. Never: two requests at once.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use forebay_clients::ControlPlane;
use forebay_clients::server::Implementation;
use forebay_rt::Clock;
use forebay_scratch::Scratch;
use http::Request;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use super::script::{AuditStep, USERS, prepared};
use super::told::{ID, told};
use crate::pair::config_of;

/// How often a log is looked at until it has everything.
const LOOKS_MAX: usize = 100;
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What came of a script.
#[derive(Debug, Default)]
pub struct ComparedAudit {
    pub requests: usize,
    /// Events that ours has noted.
    pub events: usize,
    /// What differs, request by request.
    pub lines: Vec<String>,
}

/// Runs `script` under the policy at both servers.
///
/// # Errors
/// What kept a server from being asked.
pub async fn compare(policy: &str, script: &[AuditStep]) -> Result<ComparedAudit, String> {
    let ours = Side::start(Implementation::Forebay, policy).await?;
    let theirs = Side::start(Implementation::KubeApiserver, policy).await?;
    let mut compared = ComparedAudit { requests: script.len(), ..ComparedAudit::default() };
    let mut codes = Vec::new();
    for (at, step) in script.iter().enumerate() {
        codes.push((ours.send(at, step).await?, theirs.send(at, step).await?));
    }
    let (ours, theirs) = (ours.told().await?, theirs.told().await?);
    compared.events = ours.values().map(Vec::len).sum();
    let none = Vec::new();
    for (at, step) in script.iter().enumerate() {
        let id = format!("{ID}{at}");
        let (of_ours, of_theirs) = (ours.get(&id).unwrap_or(&none), theirs.get(&id).unwrap_or(&none));
        // What no policy wants noted differs all the same, and so does all that follows from it.
        if of_ours != of_theirs || codes[at].0 != codes[at].1 {
            let AuditStep { token, method, path, .. } = step;
            let text =
                |events: &[Value]| events.iter().map(Value::to_string).collect::<Vec<_>>().join("\n  ");
            let body = String::from_utf8_lossy(&step.body);
            compared.lines.push(format!(
                "{id} {token} {method} {path} {:?} {body} (codes {:?})\n  ours:\n  {}\n  theirs:\n  {}",
                step.headers,
                codes[at],
                text(of_ours),
                text(of_theirs)
            ));
        }
    }
    Ok(compared)
}

/// A server, its log, and a client of each user.
struct Side {
    _scratch: Scratch,
    _server: ControlPlane,
    log: std::path::PathBuf,
    clients: BTreeMap<&'static str, Client>,
    clock: Clock,
}

impl Side {
    async fn start(implementation: Implementation, policy: &str) -> Result<Side, String> {
        let scratch = Scratch::new();
        let text = format!(r#"{{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", {policy}}}"#);
        let policy = scratch.file("policy.yaml", &text);
        let groups = [",\"dev,ops\"", ",dev", "", ""];
        let tokens = USERS.iter().zip(groups).filter(|(user, _)| **user != "wrong");
        let tokens: Vec<String> =
            tokens.map(|(user, groups)| format!("{user},{user},uid-{user}{groups}")).collect();
        let tokens = scratch.file("tokens.csv", &format!("{}\n", tokens.join("\n")));
        let log = scratch.path().join("audit.log");
        let mut flags = vec![
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", log.display()),
            format!("--token-auth-file={}", tokens.display()),
        ];
        let server = match implementation {
            Implementation::Forebay => {
                flags.push("--service-account-issuer=https://kubernetes.default.svc".to_owned());
                ControlPlane::start_told(flags)?
            }
            Implementation::KubeApiserver => ControlPlane::start_rival_with(flags)?,
        };
        let mut clients = BTreeMap::new();
        for user in USERS {
            clients.insert(user, client(server.kubeconfig(), Some(user)).await?);
        }
        let admin = client(server.kubeconfig(), None).await?;
        for (path, object) in prepared() {
            let request = Request::post(path).header("Content-Type", "application/json");
            let request =
                request.body(Body::from(object.to_string().into_bytes())).map_err(|e| e.to_string())?;
            let answer = admin.send(request).await.map_err(|e| e.to_string())?;
            if !answer.status().is_success() {
                return Err(format!("{path}: {}", answer.status()));
            }
        }
        let side = Side { _scratch: scratch, _server: server, log, clients, clock: Clock::system() };
        side.served(&admin).await?;
        Ok(side)
    }

    /// Waits until what was defined is served.
    async fn served(&self, admin: &Client) -> Result<(), String> {
        for _ in 0..LOOKS_MAX {
            let request = Request::get("/apis/example.com/v1/namespaces/a/things").body(Body::empty());
            let answer = admin.send(request.map_err(|e| e.to_string())?).await.map_err(|e| e.to_string())?;
            if answer.status().is_success() {
                return Ok(());
            }
            self.clock.sleep(LOOK_AGAIN).await;
        }
        Err("what was defined is not served".to_owned())
    }

    /// The code of the answer, once all of that is there.
    async fn send(&self, at: usize, step: &AuditStep) -> Result<u16, String> {
        let mut head = Request::builder().method(step.method.clone()).uri(&step.path);
        head = head.header("Audit-ID", format!("{ID}{at}"));
        for (name, value) in &step.headers {
            head = head.header(*name, value);
        }
        let request = head.body(Body::from(step.body.clone())).map_err(|e| format!("{}: {e}", step.path))?;
        let client = self.clients.get(step.token).ok_or("nobody asks")?;
        let answer = client.send(request).await.map_err(|e| format!("{}: {e}", step.path))?;
        let code = answer.status().as_u16();
        answer.into_body().collect_bytes().await.map_err(|e| format!("{}: {e}", step.path))?;
        Ok(code)
    }

    /// What is in the log, once nothing is added any more.
    async fn told(&self) -> Result<BTreeMap<String, Vec<Value>>, String> {
        let read = || fs::read_to_string(&self.log).map_err(|why| format!("{}: {why}", self.log.display()));
        let mut before = read()?;
        for _ in 0..LOOKS_MAX {
            self.clock.sleep(4 * LOOK_AGAIN).await;
            let now = read()?;
            if now.len() == before.len() {
                break;
            }
            before = now;
        }
        Ok(told(&before))
    }
}

/// A client with the token of that user, or the administrator's.
async fn client(kubeconfig: &Path, token: Option<&str>) -> Result<Client, String> {
    let mut config = config_of(kubeconfig).await?;
    if let Some(token) = token {
        config.auth_info =
            kube::config::AuthInfo { token: Some(token.to_owned().into()), ..Default::default() };
    }
    Client::try_from(config).map_err(|e| e.to_string())
}
