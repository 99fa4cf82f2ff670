//! What the committed table says of types that everybody knows.

use super::*;

fn pod() -> TypeId {
    table().kind("", "v1", "Pod").expect("core/v1 Pod is built in").ty
}

#[test]
fn committed_files_parse_and_stay_small() {
    let table = table();
    assert!(table.kinds().len() > 300);
    assert!(TYPES.len() < 700 * 1024);
    let resident = table.types.capacity() * size_of::<Type>()
        + table.fields.capacity() * size_of::<Field>()
        + table.members.capacity() * 2
        + table.sorted.capacity() * 9
        + table.attrs.capacity() * size_of::<FieldAttrs>()
        + table.kinds.capacity() * size_of::<Kind>()
        + table.names.capacity() * (size_of::<(u8, &str)>() + 3)
        + TYPES.len();
    assert!(resident < 1024 * 1024, "{resident} bytes");
}

#[test]
fn kinds_are_found_by_group_version_and_kind() {
    let table = table();
    let check = |group: &str, version: &str, kind: &str, want: Option<&str>| {
        let name = table.kind(group, version, kind).and_then(|k| table.openapi_name(k.ty));
        assert_eq!(name.as_deref(), want, "{group}/{version} {kind}");
    };
    check("", "v1", "Pod", Some("io.k8s.api.core.v1.Pod"));
    check("apps", "v1", "Deployment", Some("io.k8s.api.apps.v1.Deployment"));
    check(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        Some("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"),
    );
    check(
        "apiregistration.k8s.io",
        "v1",
        "APIService",
        Some("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService"),
    );
    check("", "v1", "DeleteOptions", Some("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"));
    check("apps", "v1", "DeleteOptions", Some("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"));
    check("example.com", "v1", "DeleteOptions", None);
    check("apps", "v1", "Pod", None);
    check("", "v2", "Pod", None);
}

#[test]
fn every_kind_of_an_object_has_its_list() {
    let table = table();
    let pods = table.kind("", "v1", "Pod").and_then(|kind| kind.list).expect("PodList");
    let items = table.member(pods, "items").expect("items");
    assert_eq!(table.ty(items.ty).kind, TypeKind::List);
    assert_eq!(table.elem(items.ty), pod());
    for resource in table.resources() {
        let kind =
            table.kind(resource.group, resource.version, resource.kind).expect("resource kinds are checked");
        assert_eq!(kind.list.is_some(), resource.verbs.contains("list"), "{}", resource.plural);
    }
}

#[test]
fn members_splice_inline_structs_in_go_order() {
    let table = table();
    let volume = table.type_named("core/v1", "Volume").expect("Volume");
    let names: Vec<_> = table.members(volume).map(|field| field.name).take(4).collect();
    assert_eq!(names, ["name", "hostPath", "emptyDir", "gcePersistentDisk"]);
    let inline = &table.fields(volume)[1];
    assert_eq!((inline.name, inline.proto), ("", 2));
    assert!(table.has_type_meta(pod()));
    assert!(!table.has_type_meta(volume));
    let names: Vec<_> = table.members(pod()).map(|field| field.name).collect();
    assert_eq!(names, ["kind", "apiVersion", "metadata", "spec", "status"]);
}

#[test]
fn every_member_is_found_by_name_whatever_the_order() {
    let table = table();
    for (id, ty) in table.types().filter(|(_, ty)| ty.kind == TypeKind::Struct) {
        let mut names: Vec<_> = table.members(id).map(|field| field.name).collect();
        for _ in 0..2 {
            let mut near = 0;
            for name in &names {
                let found = table.seek(id, &mut near, name).map(|at| table.member_indexes(id)[at]);
                assert_eq!(found.map(|index| table.field_at(index).name), Some(*name), "{}", ty.name);
                assert_eq!(table.seek(id, &mut near, &format!("{name}x")), None, "{}", ty.name);
            }
            names.sort_unstable();
        }
        assert!(table.member(id, "").is_none());
    }
}

#[test]
fn fields_carry_what_merging_and_encoding_need() {
    let table = table();
    let spec = table.type_named("core/v1", "PodSpec").expect("PodSpec");
    let containers = table.member(spec, "containers").expect("containers");
    let attrs = table.attrs(containers);
    assert_eq!((attrs.patch_strategy, attrs.patch_merge_key), (Some("merge"), Some("name")));
    assert_eq!(attrs.list_type, Some(ListType::Map));
    assert_eq!(attrs.list_map_keys().collect::<Vec<_>>(), ["name"]);
    assert_eq!(containers.proto, 2);
    assert!(!containers.flags.omit_empty());
    assert_eq!(table.go_type(containers.ty), "[]v1.Container");

    let service = table.type_named("core/v1", "ServiceSpec").expect("ServiceSpec");
    let ports = table.attrs(table.member(service, "ports").expect("ports"));
    assert_eq!(ports.patch_merge_key, Some("port"));
    assert_eq!(ports.list_map_keys().collect::<Vec<_>>(), ["port", "protocol"]);

    let meta = table.type_named("meta/v1", "ObjectMeta").expect("ObjectMeta");
    let created = table.member(meta, "creationTimestamp").expect("creationTimestamp");
    assert!(created.flags.omit_zero() && created.flags.omit_empty() && !created.flags.pointer());
    assert_eq!(table.ty(created.ty).kind, TypeKind::Time);

    let selector = table.type_named("meta/v1", "LabelSelector").expect("LabelSelector");
    assert_eq!(table.ty(selector).map_type, Some(MapType::Atomic));

    let port = table.type_named("core/v1", "ContainerPort").expect("ContainerPort");
    let protocol = table.member(port, "protocol").expect("protocol");
    assert_eq!(table.attrs(protocol).default, Some("\"TCP\""));
    let values: Vec<_> = table.enum_values(protocol.ty).expect("Protocol is an enum").collect();
    assert_eq!(values, ["SCTP", "TCP", "UDP"]);
    assert!(table.enum_values(created.ty).is_none());
    // Two of its constants are those of another package.
    let address = table.type_named("discovery/v1", "AddressType").expect("AddressType");
    let values: Vec<_> = table.enum_values(address).expect("AddressType is an enum").collect();
    assert_eq!(values, ["FQDN", "IPv4", "IPv6"]);
}

#[test]
fn go_types_print_as_go_prints_them() {
    let table = table();
    let check = |package: &str, name: &str, member: &str, want: &str| {
        let owner = table.type_named(package, name).expect("the type");
        let field = table.member(owner, member).expect("the member");
        assert_eq!(table.go_type(field.ty), want, "{name}.{member}");
    };
    check("core/v1", "PodSpec", "nodeSelector", "map[string]string");
    check("core/v1", "PodSpec", "restartPolicy", "v1.RestartPolicy");
    check("core/v1", "PodSpec", "terminationGracePeriodSeconds", "int64");
    check("core/v1", "ResourceRequirements", "limits", "v1.ResourceList");
    check("core/v1", "Secret", "data", "map[string][]uint8");
    check("core/v1", "ContainerPort", "containerPort", "int32");
    check("core/v1", "HTTPGetAction", "port", "intstr.IntOrString");
}

#[test]
fn objects_of_api_groups_are_stored_as_protobuf_and_crds_as_json() {
    let table = table();
    let crd = table.kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition").expect("CRD");
    assert!(table.stored_as_json(crd.ty));
    assert!(!table.stored_as_json(pod()));
}

#[test]
fn resources_are_those_that_discovery_lists() {
    let table = table();
    let pods = table.resource("", "v1", "pods").expect("pods");
    assert_eq!((pods.kind, pods.singular, pods.namespaced), ("Pod", "pod", true));
    assert_eq!(pods.short_names().collect::<Vec<_>>(), ["po"]);
    assert_eq!(pods.categories().collect::<Vec<_>>(), ["all"]);
    assert!(pods.verbs.contains("deletecollection"));
    let names: Vec<_> = pods.subresources.iter().map(|s| s.name).collect();
    let want = "attach binding ephemeralcontainers eviction exec log portforward proxy resize status";
    assert_eq!(names.join(" "), want);
    let eviction = pods.subresource("eviction").expect("eviction");
    assert_eq!((eviction.group, eviction.version, eviction.kind), ("policy", "v1", "Eviction"));
    assert!(pods.subresource("exec").expect("exec").connect);
    assert!(
        pods.subresource("log").expect("log").connect,
        "its answer is text that a kubelet sends, not the Pod"
    );

    let namespaces = table.resource("", "v1", "namespaces").expect("namespaces");
    assert!(!namespaces.verbs.contains("deletecollection"));
    assert!(table.resource("apps", "v1", "pods").is_none());
    let order: Vec<_> = table.resources().iter().map(|r| (r.group, r.version, r.plural)).collect();
    assert!(order.is_sorted());
    assert_eq!(order.len(), 68);
}

#[test]
fn storage_prefixes_are_those_of_etcd() {
    let check = |group: &str, plural: &str, want: Option<&str>| {
        let resource = table().resource(group, "v1", plural).expect("the resource");
        assert_eq!(resource.storage_prefix, want, "{plural}");
    };
    check("", "pods", Some("pods"));
    check("", "services", Some("services/specs"));
    check("", "endpoints", Some("services/endpoints"));
    check("", "nodes", Some("minions"));
    check("", "replicationcontrollers", Some("controllers"));
    check("", "events", Some("events"));
    check("events.k8s.io", "events", Some("events"));
    check("", "bindings", None);
    check(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        Some("apiextensions.k8s.io/customresourcedefinitions"),
    );
}

#[test]
fn field_labels_are_those_of_the_kind() {
    let pods = table().resource("", "v1", "pods").expect("pods");
    let host = pods.field("spec.host").expect("spec.host");
    assert_eq!(host.paths().collect::<Vec<_>>(), ["spec.nodeName"]);
    assert_eq!(pods.field("spec.hostNetwork").expect("spec.hostNetwork").absent, "false");
    assert_eq!(pods.field("status.podIPs").expect("status.podIPs").paths().count(), 0);
    assert!(pods.field("spec.foo").is_none());
    assert_eq!(pods.unsupported_field("spec.foo"), "field label not supported: spec.foo");

    let events = table().resource("", "v1", "events").expect("events");
    let source: Vec<_> = events.field("source").expect("source").paths().collect();
    assert_eq!(source, ["source.component", "reportingComponent"]);

    let config = table().resource("", "v1", "configmaps").expect("configmaps");
    assert!(config.field("metadata.namespace").is_some());
    let want = r#""a\"b" is not a known field selector: only "metadata.name", "metadata.namespace""#;
    assert_eq!(config.unsupported_field("a\"b"), want);
    let jobs = table().resource("batch", "v1", "jobs").expect("jobs");
    assert_eq!(jobs.unsupported_field("x"), r#"field label "x" not supported for Job"#);
}

#[test]
fn malformed_table_lines_are_refused_with_their_number() {
    let check = |types: &'static str, resources: &'static str, want: &str| {
        let error = parse::parse(types, resources).expect_err(want);
        assert_eq!(error.to_string(), want);
    };
    check("type A struct", "", "line 1: a type before any package");
    check("package a k8s.io/a v1\ntype A struct\n x B 1 -", "", "line 3: unknown type B");
    check("package a k8s.io/a v1\ntype A struct\n x string 1 q", "", "line 3: unknown flag q");
    check("package a k8s.io/a v1\ntype A struct\n - A 1 -", "", "line 0: A is inline in itself");
    check("", "resource a", "line 1: 1 words instead of 10");
}
