//! The feature gates of Kubernetes v1.36, so that a command line made for kube-apiserver is understood.
//!
//! One has an effect here, `ConstrainedImpersonation`; what is served otherwise is in COMPAT.md, not behind a
//! gate. A name that Kubernetes does
//! not have, or a value that it does not let one set, is an error in its words.

use super::values;

/// Checks one `Name=value`, with or without the component in front, and returns the name.
///
/// # Errors
/// The reason, as kube-apiserver gives it.
pub fn check(setting: &str) -> Result<&str, String> {
    let setting = setting.strip_prefix("kube:").unwrap_or(setting);
    let Some((name, value)) = setting.split_once('=') else {
        return Err(format!("missing bool value for {setting}"));
    };
    let (name, value) = (name.trim(), value.trim());
    let on = values::bool(value).map_err(|_| {
        format!("invalid value of {name}={value}, err: strconv.ParseBool: parsing {value:?}: invalid syntax")
    })?;
    match find(name) {
        None => Err(format!("unrecognized feature gate: {name}")),
        Some(Gate::Locked(locked)) if locked != on => {
            Err(format!("cannot set feature gate {name} to {on}, feature is locked to {locked}"))
        }
        Some(Gate::Open | Gate::Locked(_)) => Ok(name),
    }
}

/// Whether it matters how a gate is set.
pub fn has_effect(name: &str) -> bool {
    name == "ConstrainedImpersonation"
}

/// Whether a gate that is open by default is open by settings that were checked; of several the last counts.
pub fn is_on(name: &str, settings: &[String]) -> bool {
    let mut said = settings.iter().rev().filter_map(|setting| {
        let (named, value) = setting.strip_prefix("kube:").unwrap_or(setting).split_once('=')?;
        (named.trim() == name).then(|| values::bool(value.trim()).unwrap_or(true))
    });
    said.next().unwrap_or(true)
}

enum Gate {
    Open,
    Locked(bool),
}

fn find(name: &str) -> Option<Gate> {
    let has = |names: &str| !name.is_empty() && names.split(' ').any(|known| known == name);
    if has(OPEN) {
        Some(Gate::Open)
    } else if has(LOCKED_ON) {
        Some(Gate::Locked(true))
    } else if has(LOCKED_OFF) {
        Some(Gate::Locked(false))
    } else {
        None
    }
}

const OPEN: &str = "\
    APIResponseCompression APIServerIdentity APIServingWithRoutine AllAlpha AllBeta AllowDNSOnlyNodeCSR \
    AllowInsecureKubeletCertificateSigningRequests AllowParsingUserUIDFromCertAuth AllowServiceExternalIPs \
    AllowUnsafeMalformedObjectDeletion AtomicFIFO AuthorizePodWebsocketUpgradeCreatePermission \
    CBORServingAndStorage CPUManagerPolicyAlphaOptions CPUManagerPolicyBetaOptions \
    CRDObservedGenerationTracking CRIListStreaming CSIVolumeHealth ChangeContainerStatusOnKubeletRestart \
    ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowCBOR ClientsAllowTLSCacheGC \
    ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook \
    ClusterTrustBundle ClusterTrustBundleProjection ComponentFlagz ComponentStatusz \
    ConcurrentWatchObjectDecode ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules \
    ContainerStopSignals ControllerManagerReleaseLeaderElectionLockOnExit CoordinatedLeaderElection \
    CrossNamespaceVolumeDataSource CustomCPUCFSQuotaPeriod DRAConsumableCapacity DRADeviceBindingConditions \
    DRADeviceTaintRules DRADeviceTaints DRAExtendedResource DRAListTypeAttributes \
    DRANodeAllocatableResources DRAPartitionableDevices DRAPrioritizedList DRAResourceClaimDeviceStatus \
    DRAResourceClaimGranularStatusAuthorization DRAResourcePoolStatus DRASchedulerFilterTimeout \
    DRAWorkloadResourceClaims DeclarativeValidationBeta DeclarativeValidationTakeover \
    DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency DisableCPUQuotaWithExclusiveCPUs \
    EnvFiles EventedPLEG ExtendWebSocketsToKubelet GangScheduling GenericWorkload GracefulNodeShutdown \
    GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HPAScaleToZero HostnameOverride \
    ImageVolumeWithDigest InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling \
    InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory \
    InPlacePodVerticalScalingInitContainers InformerResourceVersion KMSv1 KubeletCrashLoopBackOffMax \
    KubeletEnsureSecretPulledImages KubeletInUserNamespace KubeletPodResourcesListUseActivePods \
    KubeletRegistrationGetOnExistsOnly KubeletSeparateDiskGC \
    KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot \
    LocalStorageCapacityIsolationFSQuotaMonitoring ManifestBasedAdmissionControlConfig \
    MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge \
    MaxUnavailableStatefulSet MemoryQoS MutablePVNodeAffinity MutablePodResourcesForSuspendedJobs \
    MutableSchedulingDirectivesForSuspendedJobs MutatingAdmissionPolicy NativeHistograms \
    NodeDeclaredFeatures NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching \
    PLEGOnDemandRelist PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI \
    PodCertificateRequest PodDeletionCost PodLevelResourceManagers PodLevelResources \
    PodLogsQuerySplitStreams PodReadyToStartContainersCondition PodTopologyLabelsAdmission PodsAPI \
    PortForwardWebsockets PreventStaticPodAPIReferences QOSReserved ReduceDefaultCrashLoopBackOffDecay \
    RelaxedServiceNameValidation ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile \
    RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage \
    RestartAllContainersOnContainerExits RotateKubeletServerCertificate RuntimeClassInImageCriApi \
    SELinuxMount SchedulerAsyncAPICalls SchedulerAsyncPreemption SchedulerPopFromBackoffQ \
    ServiceAccountNodeAudienceRestriction ServiceCIDRStatusFieldWiping ShardedListAndWatch \
    SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob \
    StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet \
    StatefulSetSemanticRevisionComparison StorageCapacityScoring StorageNamespaceIndex StorageVersionAPI \
    StorageVersionHash StorageVersionMigrator StrictIPCIDRValidation \
    StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics \
    TaintTolerationComparisonOperators TokenRequestServiceAccountUIDValidation \
    TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions TopologyManagerPolicyBetaOptions \
    TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation \
    UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO UserNamespacesHostNetworkSupport \
    VolumeLimitScaling WatchCacheInitializationPostStartHook WatchList WatchListClient \
    WindowsCPUAndMemoryAffinity WindowsGracefulNodeShutdown WindowsHostNetwork WorkloadAwarePreemption \
    WorkloadWithJob";

const LOCKED_ON: &str = "\
    APIServerTracing AggregatedDiscoveryRemoveBetaType AnonymousAuthConfigurableEndpoints \
    AnyVolumeDataSource AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache \
    CPUManagerPolicyOptions CRDValidationRatcheting CSIServiceAccountTokenSecrets ConsistentListFromCache \
    CustomResourceFieldSelectors DRAAdminAccess DeclarativeValidation DisableAllocatorDualWrite \
    DisableNodeKubeProxyVersion DynamicResourceAllocation ExecProbeTimeout ExternalServiceAccountTokenSigner \
    ImageMaximumGCAge ImageVolume InOrderInformers InPlacePodVerticalScaling JobBackoffLimitPerIndex \
    JobManagedBy JobPodReplacementPolicy JobSuccessPolicy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz \
    KubeletPSI KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing \
    LogarithmicScaleDown MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator \
    MutableCSINodeAllocatableCount NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread NodeLogQuery \
    NodeSwap OrderedNamespaceDeletion PodLifecycleSleepAction PodLifecycleSleepActionAllowZero \
    PodObservedGenerationTracking PodSchedulingReadiness PreferSameTrafficDistribution ProcMountType \
    RecoverVolumeExpansionFailure RecursiveReadOnlyMounts RelaxedDNSSearchValidation \
    RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization RetryGenerateName \
    SELinuxChangePolicy SELinuxMountReadWriteOncePod SchedulerQueueingHints SeparateTaintEvictionController \
    ServiceAccountTokenJTI ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation \
    ServiceAccountTokenPodNodeInfo SidecarContainers StreamingCollectionEncodingToJSON \
    StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration SupplementalGroupsPolicy \
    SystemdWatchdog TopologyManagerPolicyOptions UserNamespacesSupport VolumeAttributesClass WinDSR \
    WinOverlay";

const LOCKED_OFF: &str = "\
    AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_setting_of_a_gate_counts() {
        for (settings, want) in [
            (&[][..], true),
            (&["X=false"], false),
            (&["kube: X = false"], false),
            (&["X=false", "Y=true", "X=true"], true),
            (&["XY=false"], true),
        ] {
            let settings: Vec<String> = settings.iter().map(|one| (*one).to_owned()).collect();
            assert_eq!(is_on("X", &settings), want, "{settings:?}");
        }
    }

    #[test]
    fn gates_are_checked_in_kube_apiservers_words() {
        let rows: &[(&str, Result<&str, &str>)] = &[
            ("AllAlpha=true", Ok("AllAlpha")),
            ("kube:AllBeta=false", Ok("AllBeta")),
            (" WatchList = true", Ok("WatchList")),
            ("Nope=true", Err("unrecognized feature gate: Nope")),
            ("=true", Err("unrecognized feature gate: ")),
            ("AllAlpha", Err("missing bool value for AllAlpha")),
            (
                "AllAlpha=",
                Err("invalid value of AllAlpha=, err: strconv.ParseBool: parsing \"\": invalid syntax"),
            ),
            (
                "AllAlpha=on",
                Err("invalid value of AllAlpha=on, err: strconv.ParseBool: parsing \"on\": invalid syntax"),
            ),
            ("BtreeWatchCache=true", Ok("BtreeWatchCache")),
            (
                "BtreeWatchCache=false",
                Err("cannot set feature gate BtreeWatchCache to false, feature is locked to true"),
            ),
        ];
        for (setting, want) in rows {
            assert_eq!(check(setting), want.map_err(str::to_owned), "{setting:?}");
        }
    }
}
