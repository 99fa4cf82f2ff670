//! `--authorization-mode`: who may do what, once it is known who asks.

/// One of the modes, which are asked in their order: what any of them allows is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorizationMode {
    /// Whoever is authenticated may do everything.
    AlwaysAllow,
    /// Nobody may do anything; only `system:masters` goes around it, as in kube-apiserver.
    AlwaysDeny,
    /// What roles allow to whom they are bound.
    Rbac,
}

/// Decides on the list of modes; the second part is a warning.
///
/// # Errors
/// The reason, in kube-apiserver's words where it has any.
pub fn decide(modes: &[String]) -> Result<(Vec<AuthorizationMode>, Option<String>), String> {
    if modes.is_empty() {
        return Err("at least one authorization-mode must be passed".to_owned());
    }
    let mut decided = Vec::new();
    for (place, mode) in modes.iter().enumerate() {
        match mode.as_str() {
            "AlwaysAllow" => decided.push(AuthorizationMode::AlwaysAllow),
            "AlwaysDeny" => decided.push(AuthorizationMode::AlwaysDeny),
            "RBAC" => decided.push(AuthorizationMode::Rbac),
            "Node" => {}
            "ABAC" | "Webhook" => return Err(format!("authorization-mode {mode:?} is not served yet")),
            _ => return Err(format!("authorization-mode {mode:?} is not a valid mode")),
        }
        if modes[..place].contains(mode) {
            return Err(format!("authorization-mode [{}] has mode specified more than once", quoted(modes)));
        }
    }
    let has = |name: &str| modes.iter().any(|mode| mode == name);
    if !has("Node") {
        return Ok((decided, None));
    }
    if !has("RBAC") {
        return Err("authorization-mode \"Node\" is served only together with RBAC".to_owned());
    }
    let warning = "Node is not enforced yet, and allows nothing: kubelets have what RBAC binds them to";
    Ok((decided, Some(warning.to_owned())))
}

fn quoted(modes: &[String]) -> String {
    modes.iter().map(|mode| format!("{mode:?}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_modes_is_asked_in_its_order() {
        let rows: &[(&str, &str)] = &[
            ("AlwaysAllow", "[AlwaysAllow]"),
            ("AlwaysDeny", "[AlwaysDeny]"),
            ("AlwaysDeny,AlwaysAllow", "[AlwaysDeny, AlwaysAllow]"),
            ("RBAC", "[Rbac]"),
            (
                "Node,RBAC",
                "[Rbac]; Node is not enforced yet, and allows nothing: kubelets have what RBAC binds them to",
            ),
            ("AlwaysDeny,RBAC", "[AlwaysDeny, Rbac]"),
            ("Node", "ERROR authorization-mode \"Node\" is served only together with RBAC"),
            ("Webhook", "ERROR authorization-mode \"Webhook\" is not served yet"),
            ("RBAC,ABAC", "ERROR authorization-mode \"ABAC\" is not served yet"),
            ("rbac", "ERROR authorization-mode \"rbac\" is not a valid mode"),
            ("RBAC,RBAC", "ERROR authorization-mode [\"RBAC\" \"RBAC\"] has mode specified more than once"),
            ("", "ERROR at least one authorization-mode must be passed"),
        ];
        for (list, want) in rows {
            let modes: Vec<String> =
                list.split(',').filter(|mode| !mode.is_empty()).map(str::to_owned).collect();
            let got = match decide(&modes) {
                Ok((mode, None)) => format!("{mode:?}"),
                Ok((mode, Some(warning))) => format!("{mode:?}; {warning}"),
                Err(reason) => format!("ERROR {reason}"),
            };
            assert_eq!(got, *want, "{list}");
        }
    }
}
