package sandbox

import (
	"slices"
	"strings"
)

// effect is the effect of a key of a unit in a server of the lab.
type effect int

const (
	effectUnknown effect = iota // systemd does not know it either, and warns
	effectDone
	effectSilent // words for people, and names of other programs: there is nothing to do
	effectInert  // systemd knows it; here it changes nothing, which is said
)

// knownSections are the sections whose keys are looked up. Those of unit types that do not start
// here are known, too.
var knownSections = []string{"Unit", "Install", "Service", "Path", "Timer", "Socket", "Mount", "Automount", "Swap", "Slice", "Scope", "Target", "Device"}

func knownSection(name string) bool {
	return slices.Contains(knownSections, name) || strings.HasPrefix(name, "X-")
}

// effectOf returns the effect of a key of a unit. Keys and sections that begin with X- are for
// other programs (systemd.unit(5)).
func effectOf(unit, section, key string) effect {
	switch {
	case strings.HasPrefix(section, "X-"), strings.HasPrefix(key, "X-"), !knownSection(section):
		return effectSilent
	case section == "Unit" && (strings.HasPrefix(key, "Condition") || strings.HasPrefix(key, "Assert")):
		name := strings.TrimPrefix(strings.TrimPrefix(key, "Condition"), "Assert")
		if _, done := conditions[name]; done {
			return effectDone
		}
		if slices.Contains(inertConditions, name) {
			return effectInert
		}
		return effectUnknown
	case section != "Unit" && section != "Install" && !slices.Contains([]string{"service", "path", "timer"}, kind(unit)):
		return effectSilent // the unit does not start: that is said
	}
	return keyEffects[section+"."+key]
}

// keyEffects are the effects of keys by "Section.Key".
var keyEffects = func() map[string]effect {
	out := map[string]effect{}
	add := func(e effect, section, names string) {
		for _, name := range strings.Fields(names) {
			out[section+"."+name] = e
		}
	}
	add(effectSilent, "Unit", "Description Documentation SourcePath DefaultDependencies IgnoreOnIsolate CollectMode RequiresMountsFor WantsMountsFor OnFailureJobMode OnSuccessJobMode SurviveFinalKillSignal")
	// Upholds= does what Wants= does: the other unit is not started again when it ends.
	add(effectDone, "Unit", "Requires Requisite Wants BindsTo PartOf Upholds Conflicts Before After OnFailure OnSuccess StartLimitIntervalSec StartLimitBurst RefuseManualStart RefuseManualStop AllowIsolate DefaultDependencies StartLimitInterval")
	add(effectInert, "Unit", "JoinsNamespaceOf PropagatesReloadTo ReloadPropagatedFrom PropagatesStopTo StopPropagatedFrom StopWhenUnneeded JobTimeoutSec JobRunningTimeoutSec JobTimeoutAction JobTimeoutRebootArgument StartLimitAction FailureAction SuccessAction FailureActionExitStatus SuccessActionExitStatus RebootArgument")
	add(effectDone, "Install", "Alias WantedBy RequiredBy UpheldBy Also DefaultInstance")
	add(effectDone, "Service", `Type ExecStart ExecStartPre ExecStartPost ExecCondition ExecReload ExecStop ExecStopPost
		RemainAfterExit GuessMainPID PIDFile Restart RestartSec TimeoutSec TimeoutStartSec TimeoutStopSec SuccessExitStatus
		RestartPreventExitStatus RestartForceExitStatus NotifyAccess StartLimitInterval StartLimitBurst
		User Group SupplementaryGroups DynamicUser WorkingDirectory UMask Environment EnvironmentFile PassEnvironment UnsetEnvironment
		StandardInput StandardOutput StandardError KillMode KillSignal SendSIGHUP
		RuntimeDirectory RuntimeDirectoryMode RuntimeDirectoryPreserve StateDirectory StateDirectoryMode CacheDirectory CacheDirectoryMode
		LogsDirectory LogsDirectoryMode ConfigurationDirectory ConfigurationDirectoryMode`)
	add(effectSilent, "Service", "SyslogIdentifier SyslogFacility SyslogLevel SyslogLevelPrefix LogLevelMax LogExtraFields LogRateLimitIntervalSec LogRateLimitBurst LogNamespace LogFilterPatterns Slice")
	add(effectInert, "Service", `BusName Sockets RuntimeMaxSec RuntimeRandomizedExtraSec TimeoutAbortSec TimeoutStartFailureMode TimeoutStopFailureMode WatchdogSec WatchdogSignal
		RestartSteps RestartMaxDelaySec RestartMode RestartKillSignal ReloadSignal FinalKillSignal SendSIGKILL RootDirectoryStartOnly NonBlocking FileDescriptorStoreMax FileDescriptorStorePreserve USBFunctionDescriptors USBFunctionStrings OOMPolicy OpenFile
		FailureAction SuccessAction StartLimitAction RebootArgument PermissionsStartOnly BusPolicy
		RootDirectory RootImage RootImageOptions RootHash RootHashSignature RootVerity RootEphemeral MountAPIVFS ProtectProc ProcSubset BindPaths BindReadOnlyPaths MountImages ExtensionImages ExtensionDirectories BindLogSockets
		ReadWritePaths ReadOnlyPaths InaccessiblePaths ExecPaths NoExecPaths ReadWriteDirectories ReadOnlyDirectories InaccessibleDirectories TemporaryFileSystem
		PrivateTmp PrivateDevices PrivateNetwork NetworkNamespacePath PrivateIPC IPCNamespacePath PrivatePIDs PrivateUsers PrivateMounts PrivateBPF MountFlags MemoryKSM
		ProtectSystem ProtectHome ProtectHostname ProtectClock ProtectKernelTunables ProtectKernelModules ProtectKernelLogs ProtectControlGroups
		RestrictAddressFamilies RestrictFileSystems RestrictNamespaces RestrictRealtime RestrictSUIDSGID LockPersonality MemoryDenyWriteExecute RemoveIPC DelegateNamespaces
		CapabilityBoundingSet AmbientCapabilities SecureBits NoNewPrivileges Capabilities SELinuxContext AppArmorProfile SmackProcessLabel PAMName KeyringMode
		SystemCallFilter SystemCallErrorNumber SystemCallArchitectures SystemCallLog Personality IgnoreSIGPIPE TimerSlackNSec
		Nice CPUSchedulingPolicy CPUSchedulingPriority CPUSchedulingResetOnFork CPUAffinity NUMAPolicy NUMAMask IOSchedulingClass IOSchedulingPriority OOMScoreAdjust CoredumpFilter CoredumpReceive
		LimitCPU LimitFSIZE LimitDATA LimitSTACK LimitCORE LimitRSS LimitNOFILE LimitAS LimitNPROC LimitMEMLOCK LimitLOCKS LimitSIGPENDING LimitMSGQUEUE LimitNICE LimitRTPRIO LimitRTTIME
		TTYPath TTYReset TTYVHangup TTYVTDisallocate TTYRows TTYColumns StandardInputText StandardInputData ExitType SetLoginEnvironment UtmpIdentifier UtmpMode
		LoadCredential LoadCredentialEncrypted ImportCredential SetCredential SetCredentialEncrypted
		Delegate DelegateSubgroup DisableControllers CPUAccounting CPUWeight StartupCPUWeight CPUShares StartupCPUShares CPUQuota CPUQuotaPeriodSec AllowedCPUs StartupAllowedCPUs AllowedMemoryNodes StartupAllowedMemoryNodes
		MemoryAccounting MemoryMin MemoryLow MemoryHigh MemoryMax MemorySwapMax MemoryZSwapMax MemoryZSwapWriteback MemoryLimit DefaultMemoryMin DefaultMemoryLow StartupMemoryLow StartupMemoryHigh StartupMemoryMax StartupMemorySwapMax StartupMemoryZSwapMax
		TasksAccounting TasksMax IOAccounting IOWeight StartupIOWeight IODeviceWeight IOReadBandwidthMax IOWriteBandwidthMax IOReadIOPSMax IOWriteIOPSMax IODeviceLatencyTargetSec
		BlockIOAccounting BlockIOWeight StartupBlockIOWeight BlockIODeviceWeight BlockIOReadBandwidth BlockIOWriteBandwidth
		IPAccounting IPAddressAllow IPAddressDeny IPIngressFilterPath IPEgressFilterPath BPFProgram SocketBindAllow SocketBindDeny RestrictNetworkInterfaces NFTSet
		DeviceAllow DevicePolicy ManagedOOMSwap ManagedOOMMemoryPressure ManagedOOMMemoryPressureLimit ManagedOOMPreference MemoryPressureWatch MemoryPressureThresholdSec`)
	add(effectDone, "Path", "PathExists PathExistsGlob PathChanged PathModified DirectoryNotEmpty Unit MakeDirectory DirectoryMode")
	add(effectDone, "Timer", "OnActiveSec OnBootSec OnStartupSec OnUnitActiveSec OnUnitInactiveSec OnCalendar Persistent RemainAfterElapse Unit")
	add(effectSilent, "Timer", "AccuracySec") // timers are exact
	add(effectInert, "Timer", "RandomizedDelaySec RandomizedOffsetSec FixedRandomDelay OnClockChange OnTimezoneChange WakeSystem DeferReactivation")
	add(effectInert, "Path", "TriggerLimitIntervalSec TriggerLimitBurst")
	return out
}()

// inertConditions are conditions that are taken as met.
var inertConditions = []string{
	"Security", "Capability", "ACPower", "NeedsUpdate", "Memory", "CPUs", "CPUFeature", "ControlGroupController", "PathIsEncrypted",
	"MemoryPressure", "CPUPressure", "IOPressure", "Firmware", "Credential", "KernelModuleLoaded",
}
