//! Services: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;
use crate::{GroupKind, warnings};

fn sample() -> Sample {
    Sample::new(
        "",
        "v1",
        "Service",
        json!({
            "metadata": {"name": "sv", "namespace": "default"},
            "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}},
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "sv", "namespace": "default"},
            "spec": {
                "internalTrafficPolicy": "Cluster",
                "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
                "selector": {"a": "b"},
                "sessionAffinity": "None",
                "type": "ClusterIP",
            },
            "status": {},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="1a""#, &[]),
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with a…"#]),
        (r#"metadata.name="a.b""#, &[r#"metadata.name: Invalid value: "a.b": must not contain dots"#]),
        ("spec.ports=[]", &["spec.ports: Required value"]),
        ("spec.ports=null", &["spec.ports: Required value"]),
        ("spec.ports.0.port=0", &["spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive", "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive"]),
        ("spec.ports.0.port=70000", &["spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive", "spec.ports[0].targetPort: Invalid value: 70000: must be between 1 and 65535, inclusive"]),
        (r#"spec.ports.0.protocol="X""#, &[r#"spec.ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP""#]),
        ("spec.ports.0.targetPort=0", &[]),
        (r#"spec.ports.0.targetPort="A""#, &[r#"spec.ports[0].targetPort: Invalid value: "A": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"#, r#"spec.ports[0].targetPort: Invalid value: "A": must contain at least one letter (a-z)"#]),
        (r#"spec.ports.0.targetPort="http""#, &[]),
        (r#"spec.ports.+={"port":81}"#, &["spec.ports[0].name: Required value", "spec.ports[1].name: Required value"]),
        (r#"spec.ports=[{"port":80,"name":"a"},{"port":80,"name":"b"}]"#, &[r#"spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}"#]),
        (r#"spec.ports=[{"port":80,"name":"a"},{"port":81,"name":"a"}]"#, &[r#"spec.ports[1].name: Duplicate value: "a""#]),
        (r#"spec.ports.0.name="A""#, &[r#"spec.ports[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end w…"#]),
        (r#"spec.type="X""#, &[r#"spec.type: Unsupported value: "X": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort""#]),
        (r#"spec.type="ExternalName""#, &["spec.externalName: Required value"]),
        (r#"spec.type="ExternalName";spec.externalName="a.b""#, &[]),
        (r#"spec.type="ExternalName";spec.externalName="A_""#, &[r#"spec.externalName: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start …"#]),
        ("spec.ports.0.nodePort=30000", &["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"]),
        (r#"spec.type="NodePort""#, &[]),
        (r#"spec.sessionAffinity="X""#, &[r#"spec.sessionAffinity: Unsupported value: "X": supported values: "ClientIP", "None""#]),
        (r#"spec.sessionAffinity="ClientIP""#, &[]),
        (r#"spec.sessionAffinity="ClientIP";spec.sessionAffinityConfig={"clientIP":{"timeoutSeconds":0}}"#, &["spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0 and less than 86400"]),
        (r#"spec.sessionAffinityConfig={"clientIP":{"timeoutSeconds":10}}"#, &[]),
        (r#"spec.clusterIP="None";spec.clusterIPs=["None"]"#, &[]),
        (r#"spec.clusterIP="None";spec.clusterIPs=["None"];spec.ports=null"#, &[]),
        (r#"spec.clusterIP="x";spec.clusterIPs=["x"]"#, &[r#"spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#]),
        (r#"spec.type="LoadBalancer";spec.clusterIP="None";spec.clusterIPs=["None"]"#, &[r#"spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for LoadBalancer services"#]),
        (r#"spec.externalIPs=["x","127.0.0.1"]"#, &[r#"spec.externalIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#, r#"spec.externalIPs[1]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)"#]),
        (r#"spec.selector={"a b":"c"}"#, &[r#"spec.selector: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric c…"#]),
        (r#"spec.externalTrafficPolicy="Local""#, &[r#"spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services"#]),
        (r#"spec.type="NodePort";spec.externalTrafficPolicy="X""#, &[r#"spec.externalTrafficPolicy: Unsupported value: "X": supported values: "Cluster", "Local""#]),
        (r#"spec.internalTrafficPolicy="X""#, &[r#"spec.internalTrafficPolicy: Unsupported value: "X": supported values: "Cluster", "Local""#]),
        (r#"spec.loadBalancerIP="x""#, &[]),
        (r#"spec.loadBalancerSourceRanges=["10.0.0.0/8"]"#, &["spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'"]),
        (r#"spec.type="LoadBalancer";spec.loadBalancerSourceRanges=["x"]"#, &[r#"spec.LoadBalancerSourceRanges[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#]),
        ("spec.healthCheckNodePort=30001", &["spec.healthCheckNodePort: Invalid value: 30001: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"]),
        (r#"spec.ipFamilyPolicy="X""#, &[r#"spec.ipFamilyPolicy: Unsupported value: "X": supported values: "PreferDualStack", "RequireDualStack", "SingleStack""#]),
        (r#"spec.ipFamilies=["IPv5"]"#, &[r#"spec.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6""#]),
        (r#"spec.ipFamilies=["IPv4","IPv4"]"#, &[r#"spec.ipFamilies[1]: Duplicate value: "IPv4""#]),
        (r#"spec.trafficDistribution="X""#, &[r#"spec.trafficDistribution: Unsupported value: "X": supported values: "PreferClose", "PreferSameZone", "PreferSameNode""#]),
        (r#"spec.trafficDistribution="PreferClose""#, &[]),
        (r#"spec.loadBalancerClass="a b""#, &["spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"]),
        (r#"spec.type="LoadBalancer";spec.loadBalancerClass="a b""#, &[r#"spec.loadBalancerClass: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alpha…"#]),
        (r#"spec.ports.0.appProtocol="a b""#, &[r#"spec.ports[0].appProtocol: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an al…"#]),
        ("spec.allocateLoadBalancerNodePorts=true", &["spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is 'LoadBalancer'"]),
        (r#"spec.type="LoadBalancer""#, &[]),
    ]);
}

#[test]
fn what_does_nothing_or_will_not_for_long_is_warned_of() {
    let rows: [(&str, &[&str]); 6] = [
        (
            r#"metadata.annotations={"service.kubernetes.io/topology-aware-hints":"auto"}"#,
            &[
                "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead",
            ],
        ),
        (
            r#"spec.clusterIP="None";spec.clusterIPs=["None"];spec.externalIPs=["1.2.3.4"];spec.sessionAffinity="ClientIP";spec.loadBalancerIP="1.2.3.4""#,
            &[
                "spec.loadBalancerIP is ignored for headless services",
                "spec.externalIPs is ignored for headless services",
                "spec.SessionAffinity is ignored for headless services",
            ],
        ),
        (
            r#"spec.externalName="foo";spec.trafficDistribution="PreferClose";spec.externalIPs=["2001:db8:0::1"]"#,
            &[
                r#"spec.externalIPs[0]: IPv6 address "2001:db8:0::1" should be in RFC 5952 canonical format ("2001:db8::1")"#,
                "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
                r#"spec.externalName is ignored when spec.type is not "ExternalName""#,
                r#"spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone""#,
            ],
        ),
        (
            r#"spec.type="ExternalName";spec.externalName="foo";spec.externalIPs=["1.2.3.4"]"#,
            &[r#"spec.externalIPs is ignored when spec.type is "ExternalName""#],
        ),
        (
            r#"spec.clusterIP="FD00::9";spec.clusterIPs=["FD00::9"]"#,
            &[
                r#"spec.clusterIPs[0]: IPv6 address "FD00::9" should be in RFC 5952 canonical format ("fd00::9")"#,
            ],
        ),
        ("", &[]),
    ];
    for (edits, expected) in rows {
        let service = sample().created(edits);
        assert_eq!(warnings(&GroupKind::built_in("", "Service"), &service, None), expected, "{edits}");
    }
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.selector={"a":"c"}"#, &[]),
        (r#"!spec.clusterIP="10.0.0.1";spec.clusterIPs=["10.0.0.1"] => spec.clusterIP="10.0.0.77";spec.clusterIPs=["10.0.0.77"]"#, &[r#"spec.clusterIPs[0]: Invalid value: ["10.0.0.77"]: may not change once set"#]),
        ("spec.clusterIP=null;spec.clusterIPs=null", &[]),
        (r#"spec.type="ExternalName";spec.externalName="x.y""#, &[]),
        (r#"spec.type="NodePort""#, &[]),
        (r#"spec.ports=[{"port":81}]"#, &[]),
        ("spec.ports=null", &["spec.ports: Required value"]),
        (r#"spec.type="X""#, &[r#"spec.type: Unsupported value: "X": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort""#]),
        (r#"@status status.loadBalancer={"ingress":[{"ip":"x"}]}"#, &["status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"]),
        (r#"@status status.loadBalancer={"ingress":[{"ip":"1.2.3.4"}]}"#, &["status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"]),
        (r#"!spec.type="LoadBalancer" => spec.loadBalancerClass="a.b/c""#, &[r#"spec.loadBalancerClass: Invalid value: "a.b/c": may not change once set"#]),
        (r#"!spec.type="LoadBalancer" => @status status.loadBalancer={"ingress":[{"ip":"x","hostname":"A_"}]}"#, &[r#"status.loadBalancer.ingress[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#, r#"status.loadBalancer.ingress[0].hostname: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' o…"#]),
        (r#"!spec.type="LoadBalancer" => @status status.loadBalancer={"ingress":[{"ip":"1.2.3.4","ipMode":"X"}]}"#, &[r#"status.loadBalancer.ingress[0].ipMode: Unsupported value: "X": supported values: "Proxy", "VIP""#]),
        (r#"!spec.type="NodePort" => spec.type="ClusterIP""#, &[]),
        (r#"spec.sessionAffinity="X""#, &[r#"spec.sessionAffinity: Unsupported value: "X": supported values: "ClientIP", "None""#]),
    ]);
}
