//! Who one is, what one may do, and tokens.

use expect_test::expect;

use super::session;

#[test]
fn who_am_i() {
    let Some(kubectl) = session("whoami") else { return };
    kubectl.check(
        "kubectl auth whoami -o jsonpath={.status.userInfo.username},{.status.userInfo.groups}\nkubectl auth whoami --as carol --as-group dev --as-uid 7\n",
        expect![[r#"
            $ kubectl auth whoami -o jsonpath={.status.userInfo.username},{.status.userInfo.groups}
            kubernetes-admin,["system:masters","system:authenticated"]
            $ kubectl auth whoami --as carol --as-group dev --as-uid 7
            ATTRIBUTE   VALUE
            Username    carol
            UID         7
            Groups      [dev system:authenticated]
        "#]],
    );
}

#[test]
fn can_i() {
    let Some(kubectl) = session("can-i") else { return };
    kubectl.check(
        "kubectl auth can-i create pods\nkubectl auth can-i get /metrics --as bob\nkubectl auth can-i --list\n",
        expect![[r#"
            $ kubectl auth can-i create pods
            yes
            $ kubectl auth can-i get /metrics --as bob
            yes
            $ kubectl auth can-i --list
            Resources   Non-Resource URLs   Resource Names   Verbs
            *.*         []                  []               [*]
                        [*]                 []               [*]
        "#]],
    );
}

#[test]
fn tokens_are_created_for_service_accounts_that_are_there() {
    let Some(kubectl) = session("create-token") else { return };
    kubectl.check(
        "kubectl create serviceaccount robot\nkubectl create token robot --duration 1m\nkubectl create token nobody\nkubectl create token robot --bound-object-kind Secret --bound-object-name none\n",
        expect![[r#"
            $ kubectl create serviceaccount robot
            serviceaccount/robot created
            $ kubectl create token robot --duration 1m
            ! error: failed to create token: TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes
            exit 1
            $ kubectl create token nobody
            ! error: failed to create token: serviceaccounts "nobody" not found
            exit 1
            $ kubectl create token robot --bound-object-kind Secret --bound-object-name none
            ! error: failed to create token: secrets "none" not found
            exit 1
        "#]],
    );
}
