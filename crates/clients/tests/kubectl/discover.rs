//! What a server says of itself: versions, resources, schemas, health.

use expect_test::expect;
use forebay_clients::Implementation;

use super::{fixtures, session};

/// The groups that this server serves, of those that kube-apiserver has.
const GROUPS: &[&str] = &[
    "''",
    "apps",
    "batch",
    "rbac.authorization.k8s.io",
    "coordination.k8s.io",
    "events.k8s.io",
    "discovery.k8s.io",
    "apiextensions.k8s.io",
];

#[test]
fn api_resources_of_each_group() {
    let Some(kubectl) = session("resources") else { return };
    let lines: String =
        GROUPS.iter().map(|group| format!("kubectl api-resources --api-group={group} -o wide\n")).collect();
    kubectl.check(&lines, expect![[r#"
        $ kubectl api-resources --api-group='' -o wide
        NAME                     SHORTNAMES   APIVERSION   NAMESPACED   KIND                    VERBS                                                        CATEGORIES
        bindings                              v1           true         Binding                 create
        componentstatuses        cs           v1           false        ComponentStatus         get,list
        configmaps               cm           v1           true         ConfigMap               create,delete,deletecollection,get,list,patch,update,watch
        endpoints                ep           v1           true         Endpoints               create,delete,deletecollection,get,list,patch,update,watch
        events                   ev           v1           true         Event                   create,delete,deletecollection,get,list,patch,update,watch
        limitranges              limits       v1           true         LimitRange              create,delete,deletecollection,get,list,patch,update,watch
        namespaces               ns           v1           false        Namespace               create,delete,get,list,patch,update,watch
        nodes                    no           v1           false        Node                    create,delete,deletecollection,get,list,patch,update,watch
        persistentvolumeclaims   pvc          v1           true         PersistentVolumeClaim   create,delete,deletecollection,get,list,patch,update,watch
        persistentvolumes        pv           v1           false        PersistentVolume        create,delete,deletecollection,get,list,patch,update,watch
        pods                     po           v1           true         Pod                     create,delete,deletecollection,get,list,patch,update,watch   all
        podtemplates                          v1           true         PodTemplate             create,delete,deletecollection,get,list,patch,update,watch
        replicationcontrollers   rc           v1           true         ReplicationController   create,delete,deletecollection,get,list,patch,update,watch   all
        resourcequotas           quota        v1           true         ResourceQuota           create,delete,deletecollection,get,list,patch,update,watch
        secrets                               v1           true         Secret                  create,delete,deletecollection,get,list,patch,update,watch
        serviceaccounts          sa           v1           true         ServiceAccount          create,delete,deletecollection,get,list,patch,update,watch
        services                 svc          v1           true         Service                 create,delete,deletecollection,get,list,patch,update,watch   all
        $ kubectl api-resources --api-group=apps -o wide
        NAME                  SHORTNAMES   APIVERSION   NAMESPACED   KIND                 VERBS                                                        CATEGORIES
        controllerrevisions                apps/v1      true         ControllerRevision   create,delete,deletecollection,get,list,patch,update,watch
        daemonsets            ds           apps/v1      true         DaemonSet            create,delete,deletecollection,get,list,patch,update,watch   all
        deployments           deploy       apps/v1      true         Deployment           create,delete,deletecollection,get,list,patch,update,watch   all
        replicasets           rs           apps/v1      true         ReplicaSet           create,delete,deletecollection,get,list,patch,update,watch   all
        statefulsets          sts          apps/v1      true         StatefulSet          create,delete,deletecollection,get,list,patch,update,watch   all
        $ kubectl api-resources --api-group=batch -o wide
        NAME       SHORTNAMES   APIVERSION   NAMESPACED   KIND      VERBS                                                        CATEGORIES
        cronjobs   cj           batch/v1     true         CronJob   create,delete,deletecollection,get,list,patch,update,watch   all
        jobs                    batch/v1     true         Job       create,delete,deletecollection,get,list,patch,update,watch   all
        $ kubectl api-resources --api-group=rbac.authorization.k8s.io -o wide
        NAME                  SHORTNAMES   APIVERSION                     NAMESPACED   KIND                 VERBS                                                        CATEGORIES
        clusterrolebindings                rbac.authorization.k8s.io/v1   false        ClusterRoleBinding   create,delete,deletecollection,get,list,patch,update,watch
        clusterroles                       rbac.authorization.k8s.io/v1   false        ClusterRole          create,delete,deletecollection,get,list,patch,update,watch
        rolebindings                       rbac.authorization.k8s.io/v1   true         RoleBinding          create,delete,deletecollection,get,list,patch,update,watch
        roles                              rbac.authorization.k8s.io/v1   true         Role                 create,delete,deletecollection,get,list,patch,update,watch
        $ kubectl api-resources --api-group=coordination.k8s.io -o wide
        NAME     SHORTNAMES   APIVERSION               NAMESPACED   KIND    VERBS                                                        CATEGORIES
        leases                coordination.k8s.io/v1   true         Lease   create,delete,deletecollection,get,list,patch,update,watch
        $ kubectl api-resources --api-group=events.k8s.io -o wide
        NAME     SHORTNAMES   APIVERSION         NAMESPACED   KIND    VERBS                                                        CATEGORIES
        events   ev           events.k8s.io/v1   true         Event   create,delete,deletecollection,get,list,patch,update,watch
        $ kubectl api-resources --api-group=discovery.k8s.io -o wide
        NAME             SHORTNAMES   APIVERSION            NAMESPACED   KIND            VERBS                                                        CATEGORIES
        endpointslices                discovery.k8s.io/v1   true         EndpointSlice   create,delete,deletecollection,get,list,patch,update,watch
        $ kubectl api-resources --api-group=apiextensions.k8s.io -o wide
        NAME                        SHORTNAMES   APIVERSION                NAMESPACED   KIND                       VERBS                                                        CATEGORIES
        customresourcedefinitions   crd,crds     apiextensions.k8s.io/v1   false        CustomResourceDefinition   create,delete,deletecollection,get,list,patch,update,watch   api-extensions
    "#]]);
}

#[test]
fn api_versions_of_the_served_groups() {
    let Some(kubectl) = session("versions") else { return };
    kubectl.check(
        "
        kubectl api-versions | grep -E '^(v1|(apps|batch|rbac.authorization.k8s.io|coordination.k8s.io|events.k8s.io|discovery.k8s.io|apiextensions.k8s.io)/.*)$'
        kubectl get --raw /api | sed -E 's/(serverAddress.:.)[0-9.:]+/\\1<address>/'
        kubectl get --raw /apis/apps
        kubectl get --raw /apis/coordination.k8s.io/v1
        ",
        expect![[r#"
            $ kubectl api-versions | grep -E '^(v1|(apps|batch|rbac.authorization.k8s.io|coordination.k8s.io|events.k8s.io|discovery.k8s.io|apiextensions.k8s.io)/.*)$'
            apiextensions.k8s.io/v1
            apps/v1
            batch/v1
            coordination.k8s.io/v1
            discovery.k8s.io/v1
            events.k8s.io/v1
            rbac.authorization.k8s.io/v1
            v1
            $ kubectl get --raw /api | sed -E 's/(serverAddress.:.)[0-9.:]+/\1<address>/'
            {"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"<address>"}]}
            $ kubectl get --raw /apis/apps
            {"kind":"APIGroup","apiVersion":"v1","name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}
            $ kubectl get --raw /apis/coordination.k8s.io/v1
            {"kind":"APIResourceList","apiVersion":"v1","groupVersion":"coordination.k8s.io/v1","resources":[{"name":"leases","singularName":"lease","namespaced":true,"kind":"Lease","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"storageVersionHash":"gqkMMb/YqFM="}]}
        "#]],
    );
}

#[test]
fn version_and_cluster_info() {
    let Some(kubectl) = session("version") else { return };
    let said = kubectl.run("kubectl version -o json");
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["serverVersion"]["major"], "1");
    assert_eq!(said["serverVersion"]["minor"], "36");
    assert!(said["serverVersion"]["gitVersion"].as_str().is_some_and(|v| v.starts_with("v1.36.")), "{said}");
    kubectl.check(
        "kubectl cluster-info | sed 's/\\x1b\\[[0-9;]*m//g' | head -1",
        expect![[r#"
        $ kubectl cluster-info | sed 's/\x1b\[[0-9;]*m//g' | head -1
        Kubernetes control plane is running at <server>
    "#]],
    );
}

#[test]
fn health_is_told_in_parts() {
    let Some(kubectl) = session("health") else { return };
    kubectl.check(
        "
        kubectl get --raw /readyz
        kubectl get --raw /livez
        kubectl get --raw /healthz
        kubectl get --raw /livez/ping
        kubectl get --raw '/readyz?verbose' | grep -e ping -e passed
        kubectl get --raw '/readyz?verbose&exclude=ping' | grep -e ping -e passed
        kubectl get --raw /readyz/nothing
        ",
        expect![[r#"
            $ kubectl get --raw /readyz
            ok
            $ kubectl get --raw /livez
            ok
            $ kubectl get --raw /healthz
            ok
            $ kubectl get --raw /livez/ping
            ok
            $ kubectl get --raw '/readyz?verbose' | grep -e ping -e passed
            [+]ping ok
            readyz check passed
            $ kubectl get --raw '/readyz?verbose&exclude=ping' | grep -e ping -e passed
            [+]ping excluded: ok
            readyz check passed
            $ kubectl get --raw /readyz/nothing
            ! Error from server (NotFound): the server could not find the requested resource
            exit 1
        "#]],
    );
}

#[test]
fn explain_lists_built_in_fields() {
    let Some(kubectl) = session("explain") else { return };
    // Descriptions are the prose of Kubernetes; the fields, their types and marks are the API.
    let fields = "grep -E '^(GROUP|KIND|VERSION|FIELD)|^  *[a-zA-Z]+\\s<'";
    let lines: String = [
        "configmap",
        "pod.spec.containers",
        "pod.spec.containers.resources",
        "deployment.spec",
        "deployment.spec.strategy --recursive",
        "pod.metadata",
        "lease.spec",
        "crd.spec.names",
        "secret.type",
    ]
    .iter()
    .map(|path| format!("kubectl explain {path} | {fields}\n"))
    .collect();
    kubectl.check(&lines, expect![[r#"
        $ kubectl explain configmap | grep -E '^(GROUP|KIND|VERSION|FIELD)|^  *[a-zA-Z]+\s<'
        KIND:       ConfigMap
        VERSION:    v1
        FIELDS:
          apiVersion	<string>
          binaryData	<map[string]string>
          data	<map[string]string>
          immutable	<boolean>
          kind	<string>
          metadata	<ObjectMeta>
        $ kubectl explain pod.spec.containers | grep -E '^(GROUP|KIND|VERSION|FIELD)|^  *[a-zA-Z]+\s<'
        KIND:       Pod
        VERSION:    v1
        FIELD: containers <[]Container>
        FIELDS:
          args	<[]string>
          command	<[]string>
          env	<[]EnvVar>
          envFrom	<[]EnvFromSource>
          image	<string>
          imagePullPolicy	<string>
          lifecycle	<Lifecycle>
          livenessProbe	<Probe>
          name	<string> -required-
          ports	<[]ContainerPort>
          readinessProbe	<Probe>
          resizePolicy	<[]ContainerResizePolicy>
          resources	<ResourceRequirements>
          restartPolicy	<string>
          restartPolicyRules	<[]ContainerRestartRule>
          securityContext	<SecurityContext>
          startupProbe	<Probe>
          stdin	<boolean>
          stdinOnce	<boolean>
          terminationMessagePath	<string>
          terminationMessagePolicy	<string>
          tty	<boolean>
          volumeDevices	<[]VolumeDevice>
          volumeMounts	<[]VolumeMount>
          workingDir	<string>
        $ kubectl explain pod.spec.containers.resources | grep -E '^(GROUP|KIND|VERSION|FIELD)|^  *[a-zA-Z]+\s<'
        KIND:       Pod
        VERSION:    v1
        FIELD: resources <ResourceRequirements>
        FIELDS:
          claims	<[]ResourceClaim>
          limits	<map[string]Quantity>
          requests	<map[string]Quantity>
        $ kubectl explain deployment.spec | grep -E '^(GROUP|KIND|VERSION|FIELD)|^  *[a-zA-Z]+\s<'
        GROUP:      apps
        KIND:       Deployment
        VERSION:    v1
        FIELD: spec <DeploymentSpec>
        FIELDS:
          minReadySeconds	<integer>
          paused	<boolean>
          progressDeadlineSeconds	<integer>
          replicas	<integer>
          revisionHistoryLimit	<integer>
          selector	<LabelSelector> -required-
          strategy	<DeploymentStrategy>
          template	<PodTemplateSpec> -required-
        $ kubectl explain deployment.spec.strategy --recursive | grep -E '^(GROUP|KIND|VERSION|FIELD)|^  *[a-zA-Z]+\s<'
        GROUP:      apps
        KIND:       Deployment
        VERSION:    v1
        FIELD: strategy <DeploymentStrategy>
        FIELDS:
          rollingUpdate	<RollingUpdateDeployment>
            maxSurge	<IntOrString>
            maxUnavailable	<IntOrString>
          type	<string>
        $ kubectl explain pod.metadata | grep -E '^(GROUP|KIND|VERSION|FIELD)|^  *[a-zA-Z]+\s<'
        KIND:       Pod
        VERSION:    v1
        FIELD: metadata <ObjectMeta>
        FIELDS:
          annotations	<map[string]string>
          creationTimestamp	<string>
          deletionGracePeriodSeconds	<integer>
          deletionTimestamp	<string>
          finalizers	<[]string>
          generateName	<string>
          generation	<integer>
          labels	<map[string]string>
          managedFields	<[]ManagedFieldsEntry>
          name	<string>
          namespace	<string>
          ownerReferences	<[]OwnerReference>
          resourceVersion	<string>
          selfLink	<string>
          uid	<string>
        $ kubectl explain lease.spec | grep -E '^(GROUP|KIND|VERSION|FIELD)|^  *[a-zA-Z]+\s<'
        GROUP:      coordination.k8s.io
        KIND:       Lease
        VERSION:    v1
        FIELD: spec <LeaseSpec>
        FIELDS:
          acquireTime	<string>
          holderIdentity	<string>
          leaseDurationSeconds	<integer>
          leaseTransitions	<integer>
          preferredHolder	<string>
          renewTime	<string>
          strategy	<string>
        $ kubectl explain crd.spec.names | grep -E '^(GROUP|KIND|VERSION|FIELD)|^  *[a-zA-Z]+\s<'
        GROUP:      apiextensions.k8s.io
        KIND:       CustomResourceDefinition
        VERSION:    v1
        FIELD: names <CustomResourceDefinitionNames>
        FIELDS:
          categories	<[]string>
          kind	<string> -required-
          listKind	<string>
          plural	<string> -required-
          shortNames	<[]string>
          singular	<string>
        $ kubectl explain secret.type | grep -E '^(GROUP|KIND|VERSION|FIELD)|^  *[a-zA-Z]+\s<'
        KIND:       Secret
        VERSION:    v1
        FIELD: type <string>
    "#]]);
    kubectl.check(
        "
        kubectl explain pod.spec.nothing
        kubectl explain nothings
        ",
        expect![[r#"
            $ kubectl explain pod.spec.nothing
            KIND:       Pod
            VERSION:    v1

            ! error: field "nothing" does not exist
            exit 1
            $ kubectl explain nothings
            ! the server doesn't have a resource type "nothings"
            exit 1
        "#]],
    );
}

#[test]
fn explain_tells_of_custom_fields() {
    let Some(kubectl) = session("explaincr") else { return };
    kubectl.file("crd.yaml", &fixtures::crd("explain.example.com"));
    kubectl.run("kubectl create -f crd.yaml");
    kubectl.run("kubectl wait crd/gadgets.explain.example.com --for=condition=Established");
    // The document of a new group appears a moment after its resources.
    let explained = forebay_clients::wait::until("explain", std::time::Duration::from_secs(120), || {
        let said = kubectl.transcript("kubectl explain gd-explain.spec");
        if said.contains("FIELDS") { Ok(said) } else { Err(said) }
    });
    expect![[r#"
        $ kubectl explain gd-explain.spec
        GROUP:      explain.example.com
        KIND:       Gadget
        VERSION:    v1

        FIELD: spec <Object>


        DESCRIPTION:
            What the gadget should be.

        FIELDS:
          color	<string> -required-
          enum: red, green, blue
            How it looks.

          owner	<string>
            <no description>

          replicas	<integer>
            <no description>

          size	<integer>
            <no description>

          tags	<[]string>
            <no description>


    "#]]
    .assert_eq(&explained.unwrap_or_else(|why| panic!("{why}")));
    kubectl.check(
        "
        kubectl explain gd-explain.spec.color
        kubectl explain gd-explain | grep -o 'APIVersion defines'
        kubectl explain gd-explain.metadata | grep -oE \"Standard object's metadata|CreationTimestamp is a timestamp\"
        kubectl explain gd-explain --recursive | grep -A3 conditions
        kubectl explain gd-explain --api-version=explain.example.com/v1beta1 | head -4
        ",
        expect![[r#"
            $ kubectl explain gd-explain.spec.color
            GROUP:      explain.example.com
            KIND:       Gadget
            VERSION:    v1

            FIELD: color <string>
            ENUM:
                red
                green
                blue

            DESCRIPTION:
                How it looks.


            $ kubectl explain gd-explain | grep -o 'APIVersion defines'
            APIVersion defines
            $ kubectl explain gd-explain.metadata | grep -oE "Standard object's metadata|CreationTimestamp is a timestamp"
            Standard object's metadata
            CreationTimestamp is a timestamp
            $ kubectl explain gd-explain --recursive | grep -A3 conditions
                conditions	<[]Object>
                  reason	<string>
                  status	<string> -required-
                  type	<string> -required-
            $ kubectl explain gd-explain --api-version=explain.example.com/v1beta1 | head -4
            GROUP:      explain.example.com
            KIND:       Gadget
            VERSION:    v1beta1

        "#]],
    );
}

#[test]
fn the_first_line_says_how_to_use_it() {
    let Some(kubectl) = session("stdout") else { return };
    if kubectl.server.implementation() == Implementation::KubeApiserver {
        return;
    }
    let stdout = kubectl.server.stdout();
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    assert!(stdout.contains("kubectl --kubeconfig ") && stdout.contains("data/admin.kubeconfig"), "{stdout}");
}
