//! What the chains are told, checked by their caller.

/// What is answered without credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anonymous {
    /// `/healthz`, `/livez`, `/readyz` and what is below them, `/version`; 401 elsewhere.
    HealthAndVersion,
    /// 401 everywhere.
    Nothing,
}

/// Who may do what. `system:masters` may do everything, as in kube-apiserver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authorization {
    /// Whoever is authenticated may do everything.
    AlwaysAllow,
    /// Nobody else may do anything.
    AlwaysDeny,
    /// Until RBAC is enforced, the same.
    SystemMastersOnly,
}
