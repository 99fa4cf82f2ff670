//! Files that hold secrets and that others can read.
//!
//! In: what was decided. Out: warnings. Never: changes a file.

use std::path::PathBuf;

use forebay_pki::private_files;

use crate::config::ServeConfig;

/// Says which of the given files that hold secrets others can read.
pub fn warn(config: &ServeConfig, warnings: &mut Vec<String>) {
    let accounts = &config.authentication.service_accounts;
    let etcd = config.etcd.as_ref().and_then(|etcd| etcd.client.as_ref());
    let proxy = config.front_proxy.client.as_ref();
    let kubelets = config.kubelets.client.as_ref();
    let keys =
        [config.tls.given.as_ref(), etcd, proxy, kubelets].into_iter().flatten().map(|files| &files.key);
    let encryption = config.encryption.iter().map(|given| &given.file);
    let webhook = config.authentication.webhook.iter().map(|webhook| &webhook.file);
    let others = config.authentication.token_auth_file.iter().chain(&accounts.signing_key_file);
    let others = others.chain(encryption).chain(webhook);
    // What only verifies may be public.
    let is_private = |path: &&PathBuf| private_files::read(path).is_ok_and(|pem| pem.contains("PRIVATE KEY"));
    for path in keys.chain(others).chain(accounts.key_files.iter().filter(is_private)) {
        private_files::warn_of_exposure(path, warnings);
    }
}
