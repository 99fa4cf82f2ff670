//! The policies: every level, stage and kind of rule that there is.
//!
//! In: nothing. Out: what follows the type in a policy's file. Never: one that a server refuses.

/// Name, and the rest of the file.
pub const POLICIES: [(&str, &str); 20] = [
    ("metadata", r#""rules": [{"level": "Metadata"}]"#),
    ("request", r#""rules": [{"level": "Request"}]"#),
    ("response", r#""rules": [{"level": "RequestResponse"}]"#),
    ("nothing", r#""rules": [{"level": "None"}]"#),
    (
        "without_the_first_stage",
        r#""omitStages": ["RequestReceived"], "rules": [{"level": "RequestResponse"}]"#,
    ),
    (
        "only_the_first_stage",
        r#""omitStages": ["ResponseStarted", "ResponseComplete", "Panic"], "rules": [{"level": "Request"}]"#,
    ),
    ("without_managed_fields", r#""omitManagedFields": true, "rules": [{"level": "RequestResponse"}]"#),
    (
        "managed_fields_of_some",
        r#""omitManagedFields": true, "rules": [
            {"level": "RequestResponse", "omitManagedFields": false, "resources": [{"resources": ["configmaps"]}]},
            {"level": "RequestResponse"}]"#,
    ),
    (
        "by_user",
        r#""rules": [
            {"level": "None", "users": ["alice"]},
            {"level": "RequestResponse", "users": ["bob", "system:anonymous"]},
            {"level": "Metadata"}]"#,
    ),
    (
        "by_group",
        r#""rules": [
            {"level": "Request", "userGroups": ["dev"]},
            {"level": "Metadata", "userGroups": ["system:authenticated"]}]"#,
    ),
    (
        "by_verb",
        r#""rules": [
            {"level": "None", "verbs": ["get", "list", "watch"]},
            {"level": "RequestResponse", "verbs": ["create", "patch"]},
            {"level": "Metadata", "verbs": ["update", "delete", "deletecollection", "post"]}]"#,
    ),
    (
        "by_namespace",
        r#""rules": [
            {"level": "RequestResponse", "namespaces": ["a"]},
            {"level": "Metadata", "namespaces": ["b", ""]}]"#,
    ),
    (
        "by_resource",
        r#""rules": [
            {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets", "configmaps"]}]},
            {"level": "RequestResponse", "resources": [{"group": "apps"}]},
            {"level": "Request", "resources": [{"group": "", "resources": ["pods"]}]}]"#,
    ),
    (
        "by_subresource",
        r#""rules": [
            {"level": "RequestResponse", "resources": [{"group": "", "resources": ["pods/*"]}]},
            {"level": "Request", "resources": [{"group": "*", "resources": ["*/scale", "deployments/status"]}]},
            {"level": "Metadata", "resources": [{"group": "*", "resources": ["serviceaccounts/token", "*/eviction"]}]}]"#,
    ),
    (
        "by_star",
        r#""rules": [
            {"level": "None", "resources": [{"group": "", "resources": ["*/*"]}]},
            {"level": "Request", "resources": [{"group": "*", "resources": ["*"]}]},
            {"level": "Metadata", "nonResourceURLs": ["*"]}]"#,
    ),
    (
        "by_name",
        r#""rules": [
            {"level": "RequestResponse", "resources": [
                {"group": "", "resources": ["configmaps", "pods"], "resourceNames": ["one", "two"]}]},
            {"level": "Metadata", "resources": [{"group": "", "resources": ["configmaps"], "resourceNames": [""]}]}]"#,
    ),
    (
        "by_path",
        r#""rules": [
            {"level": "Metadata", "nonResourceURLs": ["/healthz*", "/version", "/api"]},
            {"level": "RequestResponse", "nonResourceURLs": ["/apis*"]},
            {"level": "None", "nonResourceURLs": ["/*"]}]"#,
    ),
    (
        "stages_of_rules",
        r#""omitStages": ["Panic"], "rules": [
            {"level": "Metadata", "verbs": ["watch"], "omitStages": ["ResponseComplete"]},
            {"level": "Metadata", "verbs": ["get", "list"], "omitStages": ["RequestReceived"]},
            {"level": "Request", "omitStages": ["ResponseStarted"]}]"#,
    ),
    (
        "of_the_guide",
        r#""omitStages": ["RequestReceived"], "rules": [
            {"level": "RequestResponse", "resources": [{"group": "", "resources": ["pods"]}]},
            {"level": "Metadata", "resources": [{"group": "", "resources": ["pods/log", "pods/status"]}]},
            {"level": "None", "resources": [{"group": "", "resources": ["configmaps"], "resourceNames": ["two"]}]},
            {"level": "None", "users": ["system:kube-proxy"], "verbs": ["watch"],
             "resources": [{"group": "", "resources": ["endpoints", "services"]}]},
            {"level": "None", "userGroups": ["system:authenticated"], "nonResourceURLs": ["/api*", "/version"]},
            {"level": "Request", "resources": [{"group": "", "resources": ["configmaps"]}], "namespaces": ["b"]},
            {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets", "configmaps"]}]},
            {"level": "Request", "resources": [{"group": ""}, {"group": "apps"}]},
            {"level": "Metadata", "omitStages": ["RequestReceived"]}]"#,
    ),
    (
        "none_at_the_end",
        r#""rules": [
            {"level": "RequestResponse", "users": ["bob"], "verbs": ["create"], "namespaces": ["a"],
             "resources": [{"group": "", "resources": ["configmaps"]}, {"group": "apps", "resources": ["deployments"]}]}]"#,
    ),
];
