//! What holds each row of the document: requests, tests elsewhere, or nothing, which is said.
//!
//! Rows of the tables of groups, flags and controllers are held as a whole, in `main.rs`.

use crate::ask::{Ask, ask, get, post};

/// A row, by its section and its first cell.
pub struct Claim {
    pub section: &'static str,
    pub row: &'static str,
    pub held: Held,
}

/// By what a row is held.
pub enum Held {
    /// Each is sent, in this order. Every code of 4xx and 5xx that the row names is the answer to one of
    /// them.
    Asked(&'static [Ask]),
    /// Some is asked, and the rest is held by tests elsewhere.
    Partly(&'static [Ask], &'static [&'static str]),
    /// By tests elsewhere.
    Tests(&'static [&'static str]),
    /// By nobody, and why.
    Unchecked(&'static str),
}

/// Rows that nobody holds. One more is a decision, not an accident.
pub const UNCHECKED_MAX: usize = 1;

use Held::{Asked, Partly, Tests, Unchecked};

const fn claim(section: &'static str, row: &'static str, held: Held) -> Claim {
    Claim { section, row, held }
}

/// What has to be there before anything is asked.
pub const PREPARED: &[Ask] = &[
    post(MAPS, r#"{"metadata":{"name":"m"},"data":{"a":"1"}}"#, 201),
    post("/api/v1/namespaces/default/serviceaccounts", r#"{"metadata":{"name":"robot"}}"#, 201),
    post(
        "/apis/apps/v1/namespaces/default/deployments",
        r#"{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#,
        201,
    ),
    post(PODS, r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#, 201),
    post(PODS, r#"{"metadata":{"name":"q"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#, 201),
    post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        r#"{"metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
        "names":{"plural":"things","kind":"Thing","singular":"thing","shortNames":["thg"],"categories":["all"]},
        "versions":[{"name":"v1","served":true,"storage":true,
        "schema":{"openAPIV3Schema":{"type":"object","properties":{
            "spec":{"type":"object","properties":{"size":{"type":"integer","maximum":9,"default":3},"color":{"type":"string"}}},
            "status":{"type":"object","properties":{"size":{"type":"integer"}}}}}},
        "subresources":{"status":{},"scale":{"specReplicasPath":".spec.size","statusReplicasPath":".status.size"}},
        "additionalPrinterColumns":[{"name":"Size","type":"integer","jsonPath":".spec.size"}],
        "selectableFields":[{"jsonPath":".spec.color"}]},
        {"name":"v2","served":true,"storage":false,
        "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}"#,
        201,
    ),
    post(
        THINGS,
        r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"},"spec":{"color":"red"}}"#,
        201,
    ),
];

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MAP: &str = "/api/v1/namespaces/default/configmaps/m";
const APPLIED: &str = "/api/v1/namespaces/default/configmaps/applied?fieldManager=me";
const PODS: &str = "/api/v1/namespaces/default/pods";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";
const THING: &str = "/apis/example.com/v1/namespaces/default/things/t";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const CONTRACT: &[&str] = &["every_row_holds_on_every_target"];

/// The rows that are not held as a whole table, in the document's order.
#[rustfmt::skip]
pub const CLAIMS: &[Claim] = &[
    claim(DECIDE, "FlowSchemas, PriorityLevelConfigurations", Asked(&[
        get("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/catch-all", 200),
        get("/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/exempt", 200),
    ])),
    claim(DECIDE, "CertificateSigningRequests", Partly(&[
        post("/apis/certificates.k8s.io/v1/certificatesigningrequests",
            r#"{"metadata":{"name":"c"},"spec":{"request":"bm9uZQ==","signerName":"example.com/s","usages":["client auth"]}}"#, 422),
    ], &["a_certificate_request_says_who_asks"])),
    claim(DECIDE, "device classes, claims and slices", Tests(&[
        "admin_access_to_devices_needs_a_labelled_namespace", "what_is_allocated_is_written_by_who_may_bind_claims",
        "a_driver_speaks_for_its_own_devices_and_on_its_node_by_a_smaller_right",
    ])),
    claim(DECIDE, "roles and bindings of RBAC", Asked(&[
        get("/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin", 200),
        get("/apis/rbac.authorization.k8s.io/v1/clusterroles/edit", 200).says("\"rules\":null"),
    ])),
    claim(VERBS, "get, list, watch, create, update, patch, delete, deletecollection", Asked(&[
        get(MAP, 200), get(MAPS, 200).says("ConfigMapList"), get("/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1", 200).says("ADDED"),
        ask("PUT", MAP, 200).sends(r#"{"metadata":{"name":"m"},"data":{"a":"2"}}"#),
        ask("PATCH", MAP, 200).sends(r#"{"data":{"a":"3"}}"#).with(MERGE),
        post("/api/v1/namespaces/kube-public/configmaps", r#"{"metadata":{"name":"one"}}"#, 201),
        ask("DELETE", "/api/v1/namespaces/kube-public/configmaps/one", 200),
        ask("DELETE", "/api/v1/namespaces/kube-public/configmaps", 200),
        ask("DELETE", "/api/v1/namespaces", 405),
    ])),
    claim(VERBS, "HEAD on a resource", Asked(&[ask("HEAD", MAP, 405)])),
    claim(VERBS, "`/api/v1/watch/…`, `/apis/G/V/watch/…`, the deprecated form", Asked(&[
        get("/api/v1/watch/configmaps?timeoutSeconds=1", 200).says("ADDED"),
        get("/api/v1/watch/namespaces/default/configmaps/m?timeoutSeconds=1", 200).says("ADDED"),
        get("/apis/example.com/v1/watch/namespaces/default/things?timeoutSeconds=1", 200).says("ADDED"),
    ])),
    claim(VERBS, "watch over WebSocket", Tests(&["python_watches_over_websocket", "a_token_among_the_subprotocols_is_a_bearer_token"])),
    claim(VERBS, "get or list of componentstatuses", Asked(&[
        get("/api/v1/componentstatuses", 200).says("etcd-0"), get("/api/v1/componentstatuses/etcd-0", 200), get("/api/v1/componentstatuses/scheduler", 404),
    ])),
    claim(VERBS, "`status`", Asked(&[get("/apis/apps/v1/namespaces/default/deployments/d/status", 200)])),
    claim(VERBS, "`scale`", Asked(&[
        get("/apis/apps/v1/namespaces/default/deployments/d/scale", 200).says("\"Scale\""),
        get("/apis/example.com/v1/namespaces/default/things/t/scale", 200).says("\"replicas\":3"),
    ])),
    claim(VERBS, "namespaces `finalize`", Asked(&[
        ask("PUT", "/api/v1/namespaces/kube-public/finalize", 200).sends(r#"{"metadata":{"name":"kube-public"},"spec":{"finalizers":["kubernetes"]}}"#),
    ])),
    claim(VERBS, "pods `binding`, and `bindings`", Asked(&[
        post("/api/v1/namespaces/default/pods/p/binding", r#"{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}"#, 201),
        post("/api/v1/namespaces/default/bindings", r#"{"metadata":{"name":"q"},"target":{"kind":"Node","name":"n"}}"#, 201),
    ])),
    claim(VERBS, "pods `eviction`", Partly(&[
        post("/api/v1/namespaces/default/pods/q/eviction", r#"{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"q"}}"#, 201),
    ], &["an_eviction_takes_a_disruption_of_the_budget_until_there_is_none"])),
    claim(VERBS, "pods `ephemeralcontainers`, `resize`", Asked(&[
        get("/api/v1/namespaces/default/pods/p/ephemeralcontainers", 200), get("/api/v1/namespaces/default/pods/p/resize", 200),
    ])),
    claim(VERBS, "pods `log`, `exec`, `attach`, `portforward`", Partly(&[
        get("/api/v1/namespaces/default/pods/p/log", 405).says("kubelet"), get("/api/v1/namespaces/default/pods/p/exec", 405).says("kubelet"),
        get("/api/v1/namespaces/default/pods/p/attach", 405).says("kubelet"), get("/api/v1/namespaces/default/pods/p/portforward", 405).says("kubelet"),
    ], &["a_kubelet_is_asked_for_what_only_it_has"])),
    claim(VERBS, "`proxy` of pods and services", Partly(&[
        get("/api/v1/namespaces/default/pods/p/proxy", 400).says("address not allowed"),
    ], &["what_listens_in_a_pod_is_visited_and_its_links_lead_back", "behind_a_service_a_pod_is_visited_and_nothing_else_that_its_endpoints_name"])),
    claim(VERBS, "`proxy` of nodes", Asked(&[get("/api/v1/nodes/n/proxy", 405).says("kubelet")])),
    claim(VERBS, "serviceaccounts `token`", Asked(&[
        post("/api/v1/namespaces/default/serviceaccounts/robot/token", r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}"#, 201).says("\"token\":"),
    ])),
    // A 504 is asked for again and again by kube-rs, which the suite of the contract does not.
    claim(READS, "`resourceVersion` on GET", Partly(&[get("/api/v1/namespaces/default/configmaps/m?resourceVersion=0", 200)], CONTRACT)),
    claim(READS, "`resourceVersion` on LIST", Tests(CONTRACT)),
    claim(READS, "`resourceVersionMatch`", Partly(&[get("/api/v1/configmaps?resourceVersionMatch=Exact", 422)], CONTRACT)),
    claim(READS, "`limit`, `continue`", Tests(&["every_row_holds_on_every_target", "a_list_goes_on_from_the_last_key_once_its_first_state_is_given_up_on_a_quiet_store"])),
    claim(READS, "`resourceVersion` on WATCH", Tests(CONTRACT)),
    claim(READS, "`sendInitialEvents`, `allowWatchBookmarks`", Partly(&[
        get("/api/v1/configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1", 200).says("k8s.io/initial-events-end"),
    ], &["a_watch_that_means_to_stay_gets_a_bookmark_as_soon_as_it_has_everything"])),
    claim(READS, "`timeoutSeconds`, `timeout`", Tests(&["a_watch_ends_when_it_was_asked_to"])),
    claim(READS, "`labelSelector`", Asked(&[
        get("/api/v1/configmaps?labelSelector=a%3Db,c%21%3Dd,e+in+(f),g+notin+(h),i,%21j,k%3E1,l%3C2,m%3D%3Dn", 200), get("/api/v1/configmaps?labelSelector=%3D%3D%3D", 400),
    ])),
    claim(READS, "`fieldSelector`", Asked(&[
        get("/api/v1/configmaps?fieldSelector=metadata.name%3Dm,metadata.namespace%3Ddefault", 200).says("\"a\":\"3\""),
        get("/api/v1/pods?fieldSelector=spec.nodeName%3Dn", 200).says("\"name\":\"p\""),
        get("/apis/example.com/v1/things?fieldSelector=spec.color%3Dred", 200).says("\"name\":\"t\""),
        get("/api/v1/configmaps?fieldSelector=data.a%3D1", 400).says("data.a"),
    ])),
    claim(READS, "`pretty`", Asked(&[
        get("/api/v1/namespaces/default/configmaps/m?pretty=true", 200).says("\n  \"kind\""),
        get(MAP, 200).with(&[("User-Agent", "curl/8.0")]).says("\n  \"kind\""),
    ])),
    claim(CONTRACT_OF, "the cache cannot be proved to be current within 3 s", Tests(&["failure_13_a_store_that_does_not_answer_makes_no_read_stale_and_none_hang"])),
    claim(CONTRACT_OF, "the cache is not filled yet, LIST with a limit and no selector", Tests(&["failure_04_a_list_of_any_revision_goes_to_the_store_while_the_cache_fills"])),
    claim(CONTRACT_OF, "an exact LIST from before the cache's window", Tests(&[
        "a_watch_from_before_the_window_is_410_and_an_exact_list_is_read_from_the_store",
        "so_many_read_past_states_at_once_so_many_wait_and_the_others_are_told_to_come_again",
    ])),
    claim(WRITES, "`dryRun=All`", Asked(&[
        post("/api/v1/namespaces/default/configmaps?dryRun=All", r#"{"metadata":{"name":"dry"}}"#, 201), get("/api/v1/namespaces/default/configmaps/dry", 404),
    ])),
    claim(WRITES, "`fieldValidation`", Asked(&[
        post("/api/v1/namespaces/default/configmaps?dryRun=All&fieldValidation=Ignore", r#"{"metadata":{"name":"x"},"no":1}"#, 201),
        post("/api/v1/namespaces/default/configmaps?dryRun=All", r#"{"metadata":{"name":"x"},"no":1}"#, 201),
        post("/api/v1/namespaces/default/configmaps?dryRun=All&fieldValidation=Strict", r#"{"metadata":{"name":"x"},"no":1}"#, 400).says("unknown field"),
    ])),
    claim(WRITES, "`fieldManager`", Asked(&[
        post("/api/v1/namespaces/default/configmaps?dryRun=All&fieldManager=%0a", r#"{"metadata":{"name":"x"}}"#, 422).says("fieldManager"),
        post("/api/v1/namespaces/default/configmaps?dryRun=All&fieldManager=mine", r#"{"metadata":{"name":"x"},"data":{"k":"v"}}"#, 201).says("mine"),
    ])),
    claim(WRITES, "`resourceVersion`, `uid` in the object; `preconditions` of a delete", Asked(&[
        ask("PUT", THING, 409).sends(r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t","resourceVersion":"1"}}"#),
        ask("PUT", MAP, 200).sends(r#"{"metadata":{"name":"m"},"data":{"a":"3"}}"#),
        ask("PUT", MAP, 409).sends(r#"{"metadata":{"name":"m","resourceVersion":"1"}}"#),
        ask("PUT", MAP, 409).sends(r#"{"metadata":{"name":"m","uid":"other"}}"#),
        ask("DELETE", MAP, 409).sends(r#"{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"other"}}"#),
        ask("PATCH", MAP, 422).sends(r#"{"metadata":{"uid":"other"}}"#).with(MERGE),
    ])),
    claim(WRITES, "no resourceVersion", Partly(&[
        ask("PUT", MAP, 200).sends(r#"{"metadata":{"name":"m"},"data":{"a":"4"}}"#),
    ], &["concurrent_patches_of_one_object_all_succeed"])),
    claim(WRITES, "a write that changes nothing", Tests(&["a_no_op_update_writes_nothing"])),
    claim(WRITES, "`generateName`", Asked(&[
        post("/api/v1/namespaces/default/configmaps?dryRun=All", r#"{"metadata":{"generateName":"some-"}}"#, 201).says("\"name\":\"some-"),
    ])),
    claim(WRITES, "`gracePeriodSeconds`, finalizers, `deletionTimestamp`", Asked(&[
        post(MAPS, r#"{"metadata":{"name":"held","finalizers":["example.com/hold"]}}"#, 201),
        ask("DELETE", "/api/v1/namespaces/default/configmaps/held?gracePeriodSeconds=5", 200).says("deletionTimestamp"),
        get("/api/v1/namespaces/default/configmaps/held", 200).says("deletionTimestamp"),
    ])),
    claim(WRITES, "`propagationPolicy`, `orphanDependents`", Partly(&[
        // No controllers run on this server: what they are to do is only noted.
        post(MAPS, r#"{"metadata":{"name":"owner"}}"#, 201),
        ask("DELETE", "/api/v1/namespaces/default/configmaps/owner?propagationPolicy=Foreground", 200).says("foregroundDeletion"),
        ask("DELETE", "/api/v1/namespaces/default/configmaps/m?propagationPolicy=None", 422),
    ], &["an_owner_waits_in_the_foreground_for_those_that_block_it", "orphans_keep_living_without_the_reference", "owners_and_owned_go_in_all_three_ways"])),
    claim(WRITES, "`limit`, `continue`, `resourceVersion` on deletecollection", Tests(&["a_collection_is_deleted_up_to_a_limit"])),
    claim(WRITES, "answer of deletecollection", Partly(&[
        ask("DELETE", "/api/v1/namespaces/kube-public/configmaps", 200).says("ConfigMapList"),
    ], &["what_goes_with_its_collection_is_shown_unless_it_is_too_much"])),
    claim(WRITES, "`application/json-patch+json`", Asked(&[
        ask("PATCH", MAP, 200).sends(r#"[{"op":"replace","path":"/data/a","value":"5"}]"#).with(&[("Content-Type", "application/json-patch+json")]),
        ask("PATCH", MAP, 422).sends(r#"[{"op":"test","path":"/data/a","value":"no"}]"#).with(&[("Content-Type", "application/json-patch+json")]),
    ])),
    claim(WRITES, "`application/merge-patch+json`", Asked(&[ask("PATCH", MAP, 200).sends(r#"{"data":{"a":"6"}}"#).with(MERGE)])),
    claim(WRITES, "`application/strategic-merge-patch+json`", Asked(&[
        ask("PATCH", MAP, 200).sends(r#"{"data":{"a":"7"}}"#).with(STRATEGIC), ask("PATCH", THING, 415).sends(r#"{"spec":{}}"#).with(STRATEGIC),
    ])),
    claim(WRITES, "`application/apply-patch+yaml`", Partly(&[
        ask("PATCH", APPLIED, 201).sends("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\ndata: {a: b}\n").with(APPLY).says("\"operation\":\"Apply\""),
        ask("PATCH", APPLIED, 200).sends("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"applied\"}}").with(APPLY),
    ], &["an_apply_creates_shares_takes_over_and_gives_up", "a_subresource_is_owned_apart", "custom_resources_are_merged_by_their_schema", "what_is_no_configuration_of_the_object_is_not_applied"])),
    claim(WRITES, "`application/apply-patch+cbor`", Asked(&[
        ask("PATCH", MAP, 415).sends("a").with(&[("Content-Type", "application/apply-patch+cbor")]),
    ])),
    claim(WRITES, "`metadata.managedFields`", Tests(&["who_writes_owns_what_changes", "a_subresource_is_owned_apart", "a_no_op_update_of_an_object_with_managers_writes_nothing"])),
    claim(MEDIA, "JSON", Asked(&[get(MAP, 200).with(&[("Accept", "application/json")]).says("{\"kind\":\"ConfigMap\"")])),
    claim(MEDIA, "YAML", Asked(&[
        post("/api/v1/namespaces/default/configmaps?dryRun=All", "metadata:\n  name: made\n", 201).with(&[("Content-Type", "application/yaml")]),
        get(MAP, 200).with(&[("Accept", "application/yaml")]).says("kind: ConfigMap"),
        get("/api/v1/configmaps?watch=1&timeoutSeconds=1", 406).with(&[("Accept", "application/yaml")]),
    ])),
    claim(MEDIA, "`Table` v1 and v1beta1, with `includeObject`", Asked(&[
        get(MAPS, 200).with(&[("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")]).says("\"kind\":\"Table\""),
        get(MAPS, 200).with(&[("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1beta1")]).says("meta.k8s.io/v1beta1"),
        get("/api/v1/namespaces/default/configmaps?includeObject=Object", 200).with(&[("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")]).says("\"data\":{\"a\""),
        get(THINGS, 200).with(&[("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")]).says("\"name\":\"Size\""),
    ])),
    claim(MEDIA, "`PartialObjectMetadata`, `PartialObjectMetadataList`, v1 and v1beta1", Asked(&[
        get(MAP, 200).with(&[("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")]).says("\"kind\":\"PartialObjectMetadata\""),
        get(MAPS, 200).with(&[("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1")]).says("PartialObjectMetadataList"),
    ])),
    claim(MEDIA, "`drop=metadata.managedFields` in an Accept clause (KEP-5958, alpha in v1.37)", Partly(&[
        get(MAPS, 200).with(&[("Accept", "application/json;drop=metadata.managedFields")]).says("ConfigMapList"),
        get(MAP, 406).with(&[("Accept", "application/json;drop=a+a")]),
    ], &["nothing_is_missing_but_what_was_not_wanted"])),
    claim(MEDIA, "gzip", Tests(&["a_long_list_is_compressed_if_the_client_likes", "an_answer_in_gzip_inflates_to_what_it_is_without"])),
    claim(MEDIA, "`application/vnd.kubernetes.protobuf`", Partly(&[
        get(MAP, 200).with(&[("Accept", PROTOBUF)]).says("k8s\0"),
        get(THING, 406).with(&[("Accept", PROTOBUF)]),
        ask("POST", THINGS, 415).sends("k8s").with(&[("Content-Type", PROTOBUF)]),
        get(THING, 200).with(&[("Accept", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")]).says("k8s\0"),
    ], &["every_kind_says_in_protobuf_what_it_says_in_json"])),
    claim(MEDIA, "CBOR", Asked(&[
        get(MAP, 406).with(&[("Accept", "application/cbor")]),
        post(MAPS, "a", 415).with(&[("Content-Type", "application/cbor")]),
    ])),
    claim(DOCUMENTS, "`/api`, `/apis`, `/apis/<group>`, `/api/v1`, `/apis/<group>/<version>`", Asked(&[
        get("/api", 200), get("/apis", 200), get("/apis/apps", 200), get("/api/v1", 200), get("/apis/apps/v1", 200), get("/apis/example.com/v1", 200).says("things/scale"),
    ])),
    claim(DOCUMENTS, "aggregated discovery (`apidiscovery.k8s.io` v2)", Asked(&[
        get("/apis", 200).with(&[("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")]).says("APIGroupDiscoveryList"),
    ])),
    claim(DOCUMENTS, "aggregation: APIServices that name a service", Partly(&[
        get("/apis/apiregistration.k8s.io/v1/apiservices/v1.apps", 200).says("\"Local\""),
    ], &[
        "another_server_is_asked_in_the_name_of_who_asks_and_of_nobody_else", "what_another_server_serves_is_discovered_here",
        "a_watch_is_passed_through_and_breaks_off_as_its_server_does", "who_is_not_there_is_told_of_in_upstreams_words",
        "a_connection_that_is_upgraded_carries_bytes_both_ways_until_one_side_ends", "what_tells_who_asks_is_kept_published",
    ])),
    claim(DOCUMENTS, "`/openapi/v3`, with hashes in the index", Asked(&[
        get("/openapi/v3", 200).says("?hash="), get("/openapi/v3/apis/apps/v1", 200).says("DeploymentSpec").says("How old Pods make way for new ones."),
        get("/openapi/v3/apis/apps/v1", 406).with(&[("Accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf")]),
    ])),
    claim(DOCUMENTS, "`/openapi/v2`", Asked(&[
        get("/openapi/v2", 200).says("\"swagger\":\"2.0\""),
        get("/openapi/v2", 200).with(&[("Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")]),
    ])),
    claim(DOCUMENTS, "`/version`", Asked(&[get("/version", 200).says("v1.36.3+forebay-")])),
    claim(DOCUMENTS, "`/healthz`, `/livez`, `/readyz`, with `?verbose`, `?exclude=` and single checks", Partly(&[
        get("/healthz?verbose", 200).says("[+]ping ok\n[+]log ok\n[+]etcd ok\n"), get("/livez/etcd", 200).says("ok"),
        get("/readyz?verbose&exclude=etcd", 200).says("[+]etcd excluded: ok\n"), get("/readyz/informer-sync", 200), get("/readyz/shutdown", 200), get("/livez/shutdown", 404),
    ], &["checks_are_told_in_kube_apiservers_text", "why_a_check_failed_is_told_to_nobody_whom_only_the_open_path_lets_in"])),
    claim(DOCUMENTS, "`/metrics`", Asked(&[
        get("/metrics", 200).says("apiserver_request_total"), get("/metrics", 200).says("kubernetes_build_info{"),
        get("/metrics", 200).says("apiserver_request_sli_duration_seconds_count{"),
        get("/metrics", 200).says("apiserver_client_certificate_expiration_seconds_count "),
        get("/api/v1/endpoints", 200), get("/metrics", 200).says("apiserver_requested_deprecated_apis{group=\"\",removed_release=\"\",resource=\"endpoints\""),
        post("/api/v1/namespaces/default/configmaps?dryRun=All", r#"{"metadata":{"name":"counted"}}"#, 201),
        get("/metrics", 200).says("apiserver_admission_step_admission_duration_seconds_count{operation=\"CREATE\",rejected=\"false\",type=\"admit\"}"),
        get("/metrics", 200).says("apiserver_admission_controller_admission_duration_seconds_count{name=\"NamespaceLifecycle\",operation=\"CREATE\""),
        get("/metrics", 200).says("serviceaccount_stale_tokens_total 0"),
    ])),
    claim(DOCUMENTS, "`/openid/v1/jwks`, `/.well-known/openid-configuration`", Partly(&[
        get("/openid/v1/jwks", 200).says("\"keys\""), get("/.well-known/openid-configuration", 200).says("\"issuer\":\"https://"),
    ], &["others_learn_issuer_and_keys"])),
    claim(DOCUMENTS, "`/metrics/slis`", Asked(&[
        get("/livez", 200), get("/metrics/slis", 200).says("kubernetes_healthchecks_total{name=\"etcd\",status=\"success\",type=\"livez\"} "),
    ])),
    claim(DOCUMENTS, "`/statusz`, `/flagz`", Asked(&[
        get("/statusz", 200).says("\napiserver statusz\n"), get("/flagz", 200).says("\napiserver flagz\n"),
        get("/flagz", 200).with(&[("Accept", "application/json;as=Flagz;v=v1beta1;g=config.k8s.io")]).says("\"authorization-mode\":\"[AlwaysAllow]\""),
        get("/statusz", 200).with(&[("Accept", "application/json;as=Statusz;v=v1alpha1;g=config.k8s.io")]).says("\"emulationVersion\":\"1.36\""),
        get("/statusz", 406).with(&[("Accept", "application/json")]), get("/statusz", 401).anonymous(),
    ])),
    claim(DOCUMENTS, "`/debug/pprof`, `/logs`", Asked(&[get("/debug/pprof", 404), get("/logs", 404)])),
    claim(CRDS, "several versions, `conversion: None`", Asked(&[get("/apis/example.com/v2/namespaces/default/things/t", 200).says("example.com/v2")])),
    claim(CRDS, "conversion webhooks", Partly(&[get("/metrics", 200).says("apiserver_conversion_webhook_request_total")], &[
        "every_verb_answers_in_the_version_that_is_asked_for", "fields_are_owned_across_versions",
        "an_event_is_converted_once_for_a_hundred_watches", "a_list_is_converted_in_batches_and_then_not_again",
        "what_fails_to_convert_fails_lists_and_ends_watches_until_it_is_mended",
        "an_answer_that_is_wrong_is_refused_by_every_verb", "what_is_stored_in_another_version_is_migrated_when_it_is_written",
    ])),
    claim(CRDS, "structural schemas: validation, pruning, defaulting, formats, patterns, list types, embedded resources", Partly(&[
        post(THINGS, r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"u"},"spec":{"size":10}}"#, 422).says("spec.size"),
    ], &["objects_are_pruned_and_defaulted", "every_violation_of_the_schema_is_a_cause"])),
    claim(CRDS, "`x-kubernetes-validations` (CEL)", Tests(&[
        "a_rule_that_cannot_be_is_refused_with_its_definition",
        "objects_that_break_a_rule_are_refused_in_its_words",
        "what_an_object_broke_before_is_only_warned_of",
        "objects_break_the_rules_that_they_break_upstream",
        "schemas_are_refused_as_upstream_refuses_them",
    ])),
    claim(CRDS, "`status`, `scale`, printer columns, short names, categories, `selectableFields`", Asked(&[
        get("/apis/example.com/v1", 200).says("\"shortNames\":[\"thg\"]"), get("/apis/example.com/v1", 200).says("\"categories\":[\"all\"]"),
        get("/apis/example.com/v1/namespaces/default/things/t/status", 200), get("/apis/example.com/v1/things?fieldSelector=spec.color%3Dblue", 200).says("\"items\":[]"),
    ])),
    claim(CRDS, "conditions", Partly(&[
        get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com", 200).says("\"Established\""),
    ], &["a_second_definition_of_taken_names_is_not_established"])),
    claim(CRDS, "deleting a CRD", Tests(&["watchers_see_every_object_go_and_then_the_end"])),
    claim(CRDS, "a CRD's writer", Tests(&["a_definition_is_served_when_its_writer_is_answered"])),
    claim(CRDS, "a CRD's change and its watches", Tests(&[
        "a_change_of_the_schema_counts_at_once_and_ends_no_watch", "a_version_that_is_no_longer_served_ends_its_watches",
        "a_selectable_field_that_is_removed_ends_the_watches_that_select_by_it", "other_columns_end_the_watches_that_show_tables",
    ])),
    claim(WHO, "client certificates", Partly(&[
        post("/apis/authentication.k8s.io/v1/selfsubjectreviews", r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#, 201).says("system:masters"),
    ], &["everyone_learns_who_they_are"])),
    claim(WHO, "serving certificates by name (`--tls-sni-cert-key`)", Tests(&[
        "a_client_is_shown_the_certificate_of_the_name_that_it_asks_for", "names_go_before_patterns_and_what_was_said_before_what_is_in_certificates",
        "a_certificate_is_asked_for_by_its_common_name_and_the_names_that_it_covers", "certificates_for_names_are_renewed_beside_the_one_for_everybody_else",
    ])),
    claim(WHO, "curves (`--tls-curve-preferences`)", Tests(&[
        "keys_are_exchanged_by_the_curves_that_are_named_and_no_others", "keys_are_exchanged_by_what_was_asked_for_in_the_order_of_the_server",
    ])),
    claim(WHO, "HSTS (`--strict-transport-security-directives`)", Tests(&["every_answer_tells_browsers_to_insist_on_https_where_it_is_to"])),
    claim(WHO, "privileged containers (`--allow-privileged`)", Partly(&[
        post("/api/v1/namespaces/default/pods?dryRun=All", r#"{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i","securityContext":{"privileged":true}}]}}"#, 201),
    ], &[
        "a_privileged_container_is_neither_taken_in_nor_changed_where_none_is_allowed", "no_kind_takes_in_a_privileged_container_that_the_policy_disallows",
        "what_is_there_is_judged_with_every_change_but_that_of_its_status", "containers_that_the_policy_disallows_are_refused_alike",
    ])),
    claim(WHO, "bearer tokens from `--token-auth-file`", Tests(&["everyone_learns_who_they_are"])),
    claim(WHO, "service account tokens", Tests(&["a_token_lives_as_long_as_its_service_account", "a_token_ends_with_what_it_is_bound_to", "keys_outlive_the_server_and_issuers_may_change", "policies_judge_requests_for_tokens_that_are_complete", "a_secret_says_on_which_day_its_token_was_used_last"])),
    claim(WHO, "an external signer (`--service-account-signing-endpoint`, KEP-740)", Tests(&[
        "tokens_are_signed_by_who_was_named_and_verified_by_its_keys_as_they_change", "a_token_lives_no_longer_than_its_signer_signs_for",
        "while_the_signer_is_away_its_tokens_are_good_and_there_are_no_new_ones", "what_a_signer_puts_around_claims_is_checked",
        "a_signer_that_is_not_as_it_should_be_ends_the_start_in_upstreams_words", "keys_are_asked_for_once_for_all_who_wait_and_stay_while_the_signer_is_away",
    ])),
    claim(WHO, "`/.well-known/openid-configuration`, `/openid/v1/jwks`", Partly(&[
        get("/.well-known/openid-configuration", 401).anonymous(), get("/openid/v1/jwks", 401).anonymous(), get("/openid/v1/jwks", 200),
    ], &["others_learn_issuer_and_keys"])),
    claim(WHO, "TokenReview, SelfSubjectReview", Asked(&[
        post("/apis/authentication.k8s.io/v1/tokenreviews", r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"none"}}"#, 201),
        post("/apis/authentication.k8s.io/v1/selfsubjectreviews", r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#, 201),
    ])),
    claim(WHO, "SubjectAccessReview, LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview", Asked(&[
        post("/apis/authorization.k8s.io/v1/subjectaccessreviews", r#"{"spec":{"user":"u","nonResourceAttributes":{"path":"/","verb":"get"}}}"#, 201).says("\"allowed\":"),
        post("/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
            r#"{"metadata":{"namespace":"default"},"spec":{"user":"u","resourceAttributes":{"namespace":"default","verb":"get","resource":"pods"}}}"#, 201).says("\"allowed\":"),
        post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", r#"{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}"#, 201).says("\"allowed\":true"),
        post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", r#"{"spec":{"namespace":"default"}}"#, 201).says("\"resourceRules\""),
    ])),
    claim(WHO, "front proxy (`--requestheader-*`)", Tests(&["a_proxy_that_is_believed_says_whom_a_request_is_from_and_nobody_else_does", "what_tells_who_asks_is_kept_published"])),
    claim(WHO, "OIDC (`--oidc-*`, `--authentication-config`)", Partly(&[get("/metrics", 200).says("authentication_attempts{result=\"success\"}")], &[
        "tokens_of_providers_stand_for_the_same_users_and_are_refused_in_the_same_words", "keys_are_fetched_once_for_all_who_wait_and_again_when_they_rotate",
        "issuers_are_replaced_once_the_new_ones_are_there", "claims_make_a_user_by_name_and_by_expression",
    ])),
    claim(WHO, "webhook tokens (`--authentication-token-webhook-*`)", Tests(&[
        "a_webhooks_word_counts_for_a_while_be_it_yes_or_no_and_what_it_could_not_say_does_not", "a_webhook_that_cannot_now_is_asked_again_and_one_that_hangs_is_left",
    ])),
    claim(WHO, "bootstrap tokens (`--enable-bootstrap-token-auth`)", Tests(&["a_token_is_good_if_every_part_of_its_secret_is", "a_machine_joins_by_a_bootstrap_token"])),
    claim(WHO, "impersonation (`Impersonate-*`, `kubectl --as`)", Asked(&[
        post("/apis/authentication.k8s.io/v1/selfsubjectreviews", r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#, 201)
            .with(&[("Impersonate-User", "jane"), ("Content-Type", "application/json")]).says("\"username\":\"jane\""),
        get("/version", 400).with(&[("Impersonate-User", "")]), get("/version", 400).with(&[("Impersonate-Usr", "jane")]),
    ])),
    claim(WHO, "anonymous", Partly(&[
        get("/healthz", 200).anonymous(), get("/livez", 200).anonymous(), get("/readyz", 200).anonymous(), get("/livez/etcd", 200).anonymous(),
        get("/version", 200).anonymous(), get("/api", 401).anonymous(), get("/metrics", 401).anonymous(), get(MAP, 401).anonymous(), get("/nothing", 401).anonymous(),
    ], &["nobody_is_a_user_whom_roles_can_be_given"])),
    claim(WHO, "a bad token or certificate", Partly(&[
        get("/version", 401).anonymous().with(&[("Authorization", "Bearer none")]),
    ], &["a_client_of_one_server_is_a_stranger_to_another"])),
    claim(WHO, "`--authorization-mode`", Tests(&["who_has_no_role_is_told_so_in_kube_apiservers_words", "a_right_is_there_with_the_answer_that_gives_it_and_gone_with_the_one_that_takes_it", "nobody_is_a_user_whom_roles_can_be_given", "modes_are_reviewed_as_they_are", "a_right_that_is_taken_ends_no_watch_and_lets_none_begin"])),
    claim(WHO, "nodes (`Node`, NodeRestriction)", Tests(&["a_node_reads_and_writes_what_is_its_own_as_upstream_has_it", "a_node_reads_what_its_pods_name_as_long_as_they_are_there", "what_is_not_allowed_is_refused_in_upstreams_words"])),
    claim(WHO, "webhooks that authorize", Partly(&[
        get("/metrics", 200).says("apiserver_authorization_webhook_evaluations_total"),
        get("/metrics", 200).says("apiserver_authorization_decisions_total"),
    ], &["a_webhook_is_asked_in_its_place_of_the_chain_and_heard_for_a_while", "a_question_is_asked_as_upstream_asks_it", "who_has_to_wait_is_asked_once_what_is_the_same"])),
    claim(WHO, "`--authorization-config`", Partly(&[
        get("/metrics", 200).says("apiserver_authorization_config_controller_automatic_reloads_total"),
    ], &["a_file_says_the_chain_with_conditions_and_policies_of_failure", "a_file_that_changes_is_taken_in_and_one_that_is_wrong_is_not", "what_is_wrong_is_told_in_upstreams_words"])),
    claim(WHO, "admission", Partly(&[
        post("/api/v1/namespaces/nowhere/configmaps", r#"{"metadata":{"name":"x"}}"#, 404),
        ask("DELETE", "/api/v1/namespaces/default", 403), ask("DELETE", "/api/v1/namespaces/kube-system", 403), ask("DELETE", "/api/v1/namespaces/kube-public", 403),
        get("/api/v1/namespaces/default/pods/p", 200).says("\"tolerationSeconds\":300"),
    ], &["a_missing_namespace_is_not_found_and_a_terminating_one_is_forbidden", "pods_run_as_a_service_account_unless_that_is_turned_off", "plugins_say_and_make_the_same", "limits_of_a_namespace_fill_in_and_refuse", "what_is_there_is_counted_and_what_is_gone_is_given_back"])),
    claim(WHO, "admission policies", Partly(&[
        post("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
            r#"{"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]},"validations":[{"expression":"1"}]}}"#, 422)
            .says("must evaluate to bool but got int"),
    ], &["validating_policies_judge_as_kube_apiservers_do", "mutating_policies_change_what_kube_apiservers_do", "policies_see_the_options_and_the_subresource_of_a_request", "what_is_sent_to_a_subresource_is_mutated", "what_policies_make_of_applied_objects_and_of_their_managers", "policies_judge_connections_and_say_where_they_go"])),
    claim(WHO, "admission webhooks", Partly(&[
        post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All", r#"{"metadata":{"name":"w"}}"#, 201),
        get("/metrics", 200).says("apiserver_admission_webhook_request_total"),
        get("/metrics", 200).says("apiserver_admission_match_condition_evaluation_seconds"),
    ], &["webhooks_are_asked_and_heard_as_by_kube_apiserver"])),
    claim(WHO, "audit", Partly(&[
        get("/metrics", 200).says("apiserver_audit_event_total 0"), get("/metrics", 200).says("apiserver_audit_requests_rejected_total 0"),
    ], &["the_same_is_noted_of_the_same_requests", "a_disk_that_is_full_lets_requests_through_or_not_as_its_mode_says", "a_webhook_that_takes_nothing_is_asked_five_times_and_its_mode_says_what_becomes_of_requests"])),
    claim(WHO, "limits in flight", Tests(&["seats_are_given_back"])),
    claim(WHO, "turns", Partly(&[
        get("/debug/api_priority_and_fairness/dump_priority_levels", 200).says("workload-low"),
        get("/debug/api_priority_and_fairness/dump_queues", 200).says("PriorityLevelName"),
        get("/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1", 200).says("UserName"),
        get("/metrics", 200).says("apiserver_flowcontrol_nominal_limit_seats{priority_level=\"system\"}"),
    ], &["one_users_flood_leaves_anothers_requests_alone_and_is_told_why", "every_answer_says_by_which_objects_it_was_classified", "the_objects_of_the_store_decide_from_when_they_are_written"])),
    claim(WHO, "who uses the server", Partly(&[
        get("/debug/forebay/flows", 200).says("\"userAgent\""),
        get("/debug/forebay/flows?output=table&window=10m&sort=lists", 200).says("WHY"),
        get("/debug/forebay/flows", 200).with(&[("Accept", "text/plain")]).says("WHY"),
        get("/debug/forebay/flows?sort=name", 400), get("/debug/forebay/flows", 401).anonymous(),
    ], &["it_is_said_who_lists_and_why", "a_watch_whose_client_does_not_read_is_seen_behind_until_it_has_read"])),
    claim(WHO, "limits by cost", Tests(&["what_is_held_is_bounded_and_the_others_wait_in_turn_by_user"])),
    claim(WHO, "memory", Tests(&["rooms_follow_what_is_left_and_creates_are_refused_when_nothing_helps", "the_worst_mix_of_clients_does_not_kill_a_server_with_little_memory"])),
    claim(WHO, "connections", Unchecked("16,384 connections are more than a test may open")),
    claim(WHO, "causes", Tests(&["no_more_is_told_than_a_client_reads"])),
    claim(WHO, "JSON patch", Tests(&["what_a_patch_cannot_do_is_told_in_upstreams_words"])),
    claim(AT_REST, "aesgcm, aescbc, secretbox, identity", Tests(&["what_is_kept_begins_as_upstream_writes_it", "what_one_encrypts_the_other_reads_through_rotation_and_a_kill"])),
    claim(AT_REST, "the configuration", Tests(&["what_is_wrong_is_said_in_upstreams_words", "the_first_rule_of_a_resource_counts_and_wildcards_take_the_rest", "what_is_wrong_with_the_file_ends_the_start_and_names_no_key"])),
    claim(AT_REST, "KMS v2", Tests(&["a_plugin_is_asked_once_for_a_seed_and_again_after_a_start", "another_key_of_the_plugin_makes_what_was_written_stale", "a_plugin_that_is_gone_is_told_of_by_health_and_what_is_known_is_read", "a_feed_stands_still_while_a_plugin_does_not_answer"])),
    claim(AT_REST, "rotation", Tests(&["the_first_provider_writes_and_what_another_one_wrote_is_stale", "a_key_is_rotated_while_the_server_runs_and_a_write_that_changes_nothing_renews"])),
    claim(AT_REST, "where", Tests(&["no_secret_is_on_disk_or_in_a_snapshot_and_all_of_it_comes_back", "what_is_encrypted_is_moved_and_is_encrypted_there_too"])),
    claim(AT_REST, "what cannot be decrypted", Tests(&["a_store_in_front_keeps_nothing_in_the_clear_and_reads_all_of_it", "a_plugin_that_is_not_there_yet_is_waited_for_and_one_that_refuses_is_told_of"])),
    claim(AT_REST, "metrics", Tests(&["what_was_done_is_counted_by_resource_and_prefix", "reloads_are_told_by_the_server_that_did_them"])),
];

const DECIDE: &str = "Objects that decide nothing yet";
const VERBS: &str = "Verbs";
const READS: &str = "Options of reads";
const CONTRACT_OF: &str = "The contract of GET, LIST and WATCH, row by row";
const WRITES: &str = "Options of writes";
const MEDIA: &str = "Media types";
const DOCUMENTS: &str = "Documents";
const CRDS: &str = "CustomResourceDefinitions";
const WHO: &str = "Who may do what";
const AT_REST: &str = "Encryption at rest";
const MERGE: &[(&str, &str)] = &[("Content-Type", "application/merge-patch+json")];
const APPLY: &[(&str, &str)] = &[("Content-Type", "application/apply-patch+yaml")];
const STRATEGIC: &[(&str, &str)] = &[("Content-Type", "application/strategic-merge-patch+json")];
