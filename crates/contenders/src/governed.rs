//! What a cluster has that is governed: RBAC says who may do what, an audit log notes each request, quotas
//! count pods.
//!
//! In: a contender, and the directory that it starts on. Out: the same with flags and files for that, and,
//! once it runs, a user who may do all by a ClusterRole, and a quota in each namespace. Never: the
//! administrator's certificate as a client's: both servers let its group pass without a look at their rules.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::client::{Client, Protocol};
use crate::contender::Contender;
use crate::server::Instance;
use crate::{Error, forebay, pki, pods};

/// What both read, relative to the directory that they run in.
const POLICY: &str = "audit-policy.yaml";
const LOG: &str = "audit.log";
const PKI: &str = "pki";
/// More pods than anybody makes here.
const PODS_MAX: &str = "100000000";

/// The contender as it runs on `dir`, whose files are written.
pub(crate) fn contender(who: &Contender, dir: &Path) -> Result<Contender, Error> {
    let policy = dir.join(POLICY);
    // What begins with a brace is JSON to kube-apiserver.
    let rules = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n";
    fs::write(&policy, rules).map_err(Error::file("cannot write", &policy))?;
    let certificates = dir.join(PKI);
    fs::create_dir(&certificates).map_err(Error::file("cannot create", &certificates))?;
    pki::write(&certificates)?;
    let mut flags = vec![
        "--authorization-mode=RBAC".to_owned(),
        format!("--audit-policy-file={POLICY}"),
        format!("--audit-log-path={LOG}"),
    ];
    if let Contender::Forebay(_) = who {
        flags.push(format!("--client-ca-file={PKI}/ca.crt"));
    }
    Ok(who.with_flags(flags))
}

/// Gives the user rights and the namespaces quotas; from then on requests are the user's.
pub(crate) async fn begin(who: &Contender, server: &mut Instance, dir: &Path) -> Result<(), Error> {
    let mut admin = Client::connect(&server.target, Protocol::Http1).await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": pki::USER },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": pki::USER }],
    });
    post(&mut admin, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await?;
    for index in 0..pods::NAMESPACES {
        let path = format!("/api/v1/namespaces/{}/resourcequotas", pods::namespace(index));
        let spec = json!({ "hard": { "pods": PODS_MAX } });
        let quota = json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "pods" }, "spec": spec });
        post(&mut admin, &path, &quota).await?;
        // As the controller says it, which is no part of kube-apiserver.
        let status = json!({ "status": { "hard": { "pods": PODS_MAX }, "used": { "pods": "0" } } });
        let counted = admin.patch(&format!("{path}/pods/status"), Bytes::from(status.to_string())).await?;
        counted.expect("count a quota", &[200])?;
    }
    let authority = match who {
        Contender::Forebay(_) => Some(forebay::authority(dir)?),
        Contender::Kubernetes(_) => None,
    };
    server.target.tls = pki::user(&dir.join(PKI), authority)?;
    Ok(())
}

async fn post(admin: &mut Client, path: &str, body: &Value) -> Result<(), Error> {
    admin.post(path, Bytes::from(body.to_string())).await?.expect(path, &[201])?;
    Ok(())
}
