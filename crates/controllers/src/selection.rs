//! Which controllers run: `--controllers`, in kube-controller-manager's words.

/// A controller, by the name that kube-controller-manager has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    Namespace,
    GarbageCollector,
    ServiceAccount,
    RootCaPublisher,
    PolicyStatus,
    ResourceQuota,
    ClaimProtection,
    VolumeProtection,
    ClassProtection,
    RoleAggregation,
    FinishedJobs,
    Endpoints,
    EndpointSlice,
    EndpointSliceMirroring,
    TokenSigner,
    TokenCleaner,
    CertificateSigning,
    CertificateApproving,
    CertificateCleaner,
}

/// Which controllers are wanted. None by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection(Vec<Controller>);

/// A name that no controller here has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not a controller of this server; there are: {}", known())]
pub struct UnknownController {
    pub name: String,
}

impl Controller {
    pub const ALL: [Controller; 19] = [
        Controller::Namespace,
        Controller::GarbageCollector,
        Controller::ServiceAccount,
        Controller::RootCaPublisher,
        Controller::PolicyStatus,
        Controller::ResourceQuota,
        Controller::ClaimProtection,
        Controller::VolumeProtection,
        Controller::ClassProtection,
        Controller::RoleAggregation,
        Controller::FinishedJobs,
        Controller::Endpoints,
        Controller::EndpointSlice,
        Controller::EndpointSliceMirroring,
        Controller::TokenSigner,
        Controller::TokenCleaner,
        Controller::CertificateSigning,
        Controller::CertificateApproving,
        Controller::CertificateCleaner,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Controller::Namespace => "namespace-controller",
            Controller::GarbageCollector => "garbage-collector-controller",
            Controller::ServiceAccount => "serviceaccount-controller",
            Controller::RootCaPublisher => "root-ca-certificate-publisher-controller",
            Controller::PolicyStatus => "validatingadmissionpolicy-status-controller",
            Controller::ResourceQuota => "resourcequota-controller",
            Controller::ClaimProtection => "persistentvolumeclaim-protection-controller",
            Controller::VolumeProtection => "persistentvolume-protection-controller",
            Controller::ClassProtection => "volumeattributesclass-protection-controller",
            Controller::RoleAggregation => "clusterrole-aggregation-controller",
            Controller::FinishedJobs => "ttl-after-finished-controller",
            Controller::Endpoints => "endpoints-controller",
            Controller::EndpointSlice => "endpointslice-controller",
            Controller::EndpointSliceMirroring => "endpointslice-mirroring-controller",
            Controller::TokenSigner => "bootstrap-signer-controller",
            Controller::TokenCleaner => "token-cleaner-controller",
            Controller::CertificateSigning => "certificatesigningrequest-signing-controller",
            Controller::CertificateApproving => "certificatesigningrequest-approving-controller",
            Controller::CertificateCleaner => "certificatesigningrequest-cleaner-controller",
        }
    }

    /// The service account in kube-system that it writes as, by kube-controller-manager's name for it.
    pub const fn account(self) -> &'static str {
        match self {
            Controller::Namespace => "namespace-controller",
            Controller::GarbageCollector => "generic-garbage-collector",
            Controller::ServiceAccount => "service-account-controller",
            Controller::RootCaPublisher => "root-ca-cert-publisher",
            Controller::PolicyStatus => "validatingadmissionpolicy-status-controller",
            Controller::ResourceQuota => "resourcequota-controller",
            Controller::ClaimProtection => "pvc-protection-controller",
            Controller::VolumeProtection => "pv-protection-controller",
            Controller::ClassProtection => "volumeattributesclass-protection-controller",
            Controller::RoleAggregation => "clusterrole-aggregation-controller",
            Controller::FinishedJobs => "ttl-after-finished-controller",
            Controller::Endpoints => "endpoint-controller",
            Controller::EndpointSlice => "endpointslice-controller",
            Controller::EndpointSliceMirroring => "endpointslicemirroring-controller",
            Controller::TokenSigner => "bootstrap-signer",
            Controller::TokenCleaner => "token-cleaner",
            Controller::CertificateSigning
            | Controller::CertificateApproving
            | Controller::CertificateCleaner => "certificate-controller",
        }
    }

    /// Whether `*` names it, too. As in kube-controller-manager, those of bootstrap tokens have to be asked
    /// for.
    const fn is_on_by_default(self) -> bool {
        !matches!(self, Controller::TokenSigner | Controller::TokenCleaner)
    }
}

impl Selection {
    /// Reads `foo` (this one), `-foo` (not this one) and `*` (every one that is not named and is on by
    /// default). What is named first counts; no names at all are no controllers.
    ///
    /// # Errors
    /// A name that there is not.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Selection, UnknownController> {
        let names: Vec<&str> = names.into_iter().map(str::trim).filter(|name| !name.is_empty()).collect();
        let bare = |name: &'a str| name.strip_prefix('-').unwrap_or(name);
        let known = |name: &str| name == "*" || Controller::ALL.iter().any(|known| known.name() == name);
        if let Some(name) = names.iter().find(|name| !known(bare(name))) {
            return Err(UnknownController { name: bare(name).to_string() });
        }
        let wanted = |controller: &Controller| {
            let own = names.iter().find(|name| bare(name) == controller.name());
            match own {
                Some(name) => !name.starts_with('-'),
                None => controller.is_on_by_default() && names.contains(&"*"),
            }
        };
        Ok(Selection(Controller::ALL.into_iter().filter(wanted).collect()))
    }

    pub fn has(&self, controller: Controller) -> bool {
        self.0.contains(&controller)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn known() -> String {
    Controller::ALL.map(Controller::name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(names: &str) -> Result<Vec<&'static str>, String> {
        let selection = Selection::parse(names.split(',')).map_err(|error| error.to_string())?;
        Ok(Controller::ALL
            .into_iter()
            .filter(|one| selection.has(*one))
            .map(|one| one.name().split('-').next().expect("a word"))
            .collect())
    }

    #[test]
    fn names_are_read_as_kube_controller_manager_reads_them() {
        let all = [
            "namespace",
            "garbage",
            "serviceaccount",
            "root",
            "validatingadmissionpolicy",
            "resourcequota",
            "persistentvolumeclaim",
            "persistentvolume",
            "volumeattributesclass",
            "clusterrole",
            "ttl",
            "endpoints",
            "endpointslice",
            "endpointslice",
            "certificatesigningrequest",
            "certificatesigningrequest",
            "certificatesigningrequest",
        ];
        let but = |name: &str| all.into_iter().filter(|known| *known != name).collect::<Vec<_>>();
        for (names, want) in [
            ("*", all.to_vec()),
            ("", vec![]),
            ("-*", vec![]),
            ("*,-garbage-collector-controller", but("garbage")),
            ("-namespace-controller,*", but("namespace")),
            ("namespace-controller", vec!["namespace"]),
            ("-namespace-controller", vec![]),
            ("namespace-controller,-namespace-controller", vec!["namespace"]),
            (" namespace-controller , serviceaccount-controller", vec!["namespace", "serviceaccount"]),
            ("*,token-cleaner-controller", [&all[..14], &["token"], &all[14..]].concat()),
            ("bootstrap-signer-controller", vec!["bootstrap"]),
        ] {
            assert_eq!(selected(names), Ok(want), "{names}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused_and_the_known_ones_are_told() {
        let error = selected("*,-deployment-controller").expect_err("unknown");
        assert!(error.starts_with("\"deployment-controller\" is not a controller"), "{error}");
        assert!(error.ends_with("certificatesigningrequest-cleaner-controller"), "{error}");
    }
}
