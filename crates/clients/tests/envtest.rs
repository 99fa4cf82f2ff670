//! controller-runtime, as operators are tested with it: envtest starts the server, a manager reconciles on
//! it.
//!
//! In: the Go module `envtest/`, built by the first test. Out: the verdict of each Go test as one of ours.

use forebay_clients::envtest;

#[test]
fn a_manager_reconciles_a_custom_resource() {
    envtest::run("TestManagerReconciles");
}

#[test]
fn a_second_manager_takes_the_lead_when_the_first_lets_go() {
    envtest::run("TestLeadershipPassesOn");
}

#[test]
fn users_are_who_envtest_says_they_are() {
    envtest::run("TestUsersAreWhoEnvtestSaysTheyAre");
}
