package openbmc

import "github.com/metalab-dev/metalab/emulator/dialect"

// absent returns what no response of bmcweb has [V]: the names are in none of the files of
// redfish-core, those of OEM and of the registries left out (7debb89). The comment behind a
// type names the file that makes its resources.
//
// Data of the hardware that labctl record reads stay, although bmcweb lacks them: a profile
// could not be made from a capture without them (BlockSizeBytes, RatedSpeedRPM,
// PowerCapacityWatts, MaxTDPWatts, OperatingSpeedMHz and others of their kind).
func absent() []dialect.Transform {
	return []dialect.Transform{
		{ResourceType: "AccountService", Remove: []string{ // account_service.hpp
			"AccountLockoutCounterResetAfter", "AccountLockoutCounterResetEnabled", "AuthFailureLoggingThreshold", "EnforcePasswordHistoryCount",
			"LocalAccountAuth", "PasswordExpirationDays", "RequireChangePasswordAction", "SupportedAccountTypes",
		}},
		{ResourceType: "Certificate", Remove: []string{ // certificate_service.hpp
			"CertificateUsageTypes", "Fingerprint", "FingerprintHashAlgorithm", "Issuer/DisplayString", "SignatureAlgorithm",
			"Subject/DisplayString",
		}},
		{ResourceType: "CertificateService", Remove: []string{ // certificate_service.hpp
			"Actions/#CertificateService.GenerateCSR/KeyCurveId@Redfish.AllowableValues",
			"Actions/#CertificateService.GenerateCSR/KeyPairAlgorithm@Redfish.AllowableValues",
			"Actions/#CertificateService.GenerateCSR/KeyUsage@Redfish.AllowableValues",
		}},
		{ResourceType: "Chassis", Remove: []string{ // chassis.hpp
			"IndicatorLED@Redfish.AllowableValues", "Links/ManagersInChassis", "PCIeDevices",
			"PhysicalSecurity/IntrusionSensor@Redfish.AllowableValues", "PhysicalSecurity/IntrusionSensorReArm",
			"PhysicalSecurity/IntrusionSensorReArm@Redfish.AllowableValues", "PoweredByParent", "ThermalDirection",
		}},
		{ResourceType: "ComputerSystem", Remove: []string{ // systems.hpp
			"HostWatchdogTimer/TimeoutAction@Redfish.AllowableValues", "HostWatchdogTimer/WarningAction",
			"HostWatchdogTimer/WarningAction@Redfish.AllowableValues", "IndicatorLED@Redfish.AllowableValues", "LastResetCause",
			"MemorySummary/MemoryMirroring", "MemorySummary/TotalSystemPersistentMemoryGiB", "PCIeFunctions", "PCIeFunctions@odata.count",
			"PowerRestorePolicy@Redfish.AllowableValues", "ProcessorSummary/ThreadingEnabled",
		}},
		{ResourceType: "Drive", Remove: []string{ // storage_chassis.hpp
			"@Redfish.OperationApplyTimeSupport", "FailurePredicted", "Identifiers", "Links/Volumes", "Links/Volumes@odata.count", "Multipath",
			"NegotiatedSpeedGbs", "Operations", "PhysicalLocation", "SlotFormFactor", "StatusIndicator",
		}},
		{ResourceType: "EnvironmentMetrics", Remove: []string{ // environment_metrics.hpp
			"EnergykWh", "FanSpeedsPercent/*/DeviceName", "PowerLimitWatts/ControlMode@Redfish.AllowableValues", "TemperatureCelsius",
		}},
		{ResourceType: "EthernetInterface", Remove: []string{ // ethernet.hpp
			"DHCPv6/OperatingMode@Redfish.AllowableValues", "IPv6Enabled", "MaxIPv6StaticAddresses", "VLAN/VLANPriority",
		}},
		{ResourceType: "EventDestinationCollection", Remove: []string{ // event_service.hpp
			"@Redfish.CollectionCapabilities",
		}},
		{ResourceType: "EventService", Remove: []string{ // event_service.hpp
			"Actions/#EventService.SubmitTestEvent/EventType@Redfish.AllowableValues",
			"Actions/#EventService.SubmitTestEvent/MessageSeverity@Redfish.AllowableValues",
			"Actions/#EventService.SubmitTestEvent/Severity@Redfish.AllowableValues", "EventTypesForSubscription", "ExcludeMessageId",
			"ExcludeRegistryPrefix", "IncludeOriginOfConditionSupported", "OriginResourcesSupported", "SSEFilterPropertiesSupported/EventType",
			"SSEFilterPropertiesSupported/SubordinateResources", "SSEIncludeOriginOfConditionSupported", "Severities",
			"SubordinateResourcesSupported",
		}},
		{ResourceType: "Fan", Remove: []string{ // fan.hpp
			"Location/PartLocation/LocationOrdinalValue", "Location/PartLocation/LocationType", "Replaceable",
		}},
		{ResourceType: "LogEntry", Remove: []string{ // log_services.hpp
			"OriginOfConditionUnavailable", "Persistency",
		}},
		{ResourceType: "LogService", Remove: []string{ // log_services.hpp
			"Actions/#LogService.CollectDiagnosticData/DiagnosticDataType@Redfish.AllowableValues", "AutoClearResolvedEntries",
			"DiagnosticDataDetails", "LogEntryType", "LogPurposes", "Overflow", "Persistency",
		}},
		{ResourceType: "Manager", Remove: []string{ // managers.hpp
			"Links/ManagerInChassis",
		}},
		{ResourceType: "ManagerAccount", Remove: []string{ // account_service.hpp
			"AccountTypes@Redfish.AllowableValues", "RoleId@Redfish.AllowableValues",
		}},
		{ResourceType: "ManagerAccountCollection", Remove: []string{ // account_service.hpp
			"@Redfish.CollectionCapabilities",
		}},
		{ResourceType: "ManagerNetworkProtocol", Remove: []string{ // network_protocol.hpp
			"SNMP", "SSDP",
		}},
		{ResourceType: "Memory", Remove: []string{ // memory.hpp
			"DeviceLocator", "Location/PartLocation/LocationOrdinalValue", "Location/PartLocation/LocationType",
		}},
		{ResourceType: "MetricReport", Remove: []string{ // metric_report.hpp
			"MetricValues/*/MetricId",
		}},
		{ResourceType: "MetricReportDefinition", Remove: []string{ // metric_report_definition.hpp
			"MetricReportDefinitionType@Redfish.AllowableValues", "Metrics/*/MetricId", "ReportActions@Redfish.AllowableValues",
			"ReportUpdates@Redfish.AllowableValues",
		}},
		{ResourceType: "PCIeDevice", Remove: []string{ // pcie.hpp
			"Slot/Location/PartLocation/LocationOrdinalValue", "Slot/Location/PartLocation/LocationType",
		}},
		{ResourceType: "PCIeFunction", Remove: []string{ // pcie.hpp
			"Links/NetworkDeviceFunctions", "Links/NetworkDeviceFunctions@odata.count",
		}},
		{ResourceType: "Power", Remove: []string{ // sensors.hpp
			"PowerControl/*/PowerMetrics", "PowerSupplies/*/LastPowerOutputWatts", "PowerSupplies/*/LineInputVoltage",
			"PowerSupplies/*/PowerSupplyType", "Redundancy/*/MaxNumSupported", "Voltages/*/SensorNumber",
		}},
		{ResourceType: "PowerSupply", Remove: []string{ // power_supply.hpp
			"EfficiencyRatings/*/LoadPercent", "LineInputStatus", "Links/PoweringChassis", "Links/PoweringChassis@odata.count",
			"Location/PartLocation/LocationOrdinalValue", "Location/PartLocation/LocationType", "OutputNominalVoltageType", "OutputRails",
			"PhaseWiringType", "PlugType", "PowerSupplyType", "Replaceable",
		}},
		{ResourceType: "Processor", Remove: []string{ // processor.hpp
			"Location/PartLocation/LocationOrdinalValue", "Location/PartLocation/LocationType", "ProcessorIndex", "Replaceable",
			"TotalEnabledCores", "TotalEnabledThreads", "TurboState",
		}},
		{ResourceType: "Role", Remove: []string{ // roles.hpp
			"AssignedPrivileges@Redfish.AllowableValues",
		}},
		{ResourceType: "Sensor", Remove: []string{ // sensors.hpp
			"LifetimeReading", "SensingInterval",
		}},
		{ResourceType: "ServiceRoot", Remove: []string{ // service_root.hpp
			"ProtocolFeaturesSupported/FilterQueryComparisonOperations", "ProtocolFeaturesSupported/FilterQueryCompoundOperations",
			"ProtocolFeaturesSupported/IncludeOriginOfConditionQuery", "ProtocolFeaturesSupported/MultipleHTTPRequests",
			"ProtocolFeaturesSupported/TopSkipQuery",
		}},
		{ResourceType: "SessionService", Remove: []string{ // redfish_sessions.hpp
			"AbsoluteSessionTimeout", "AbsoluteSessionTimeoutEnabled",
		}},
		{ResourceType: "SoftwareInventory", Remove: []string{ // update_service.hpp
			"Links/ActiveTargets", "Links/ActiveTargets@odata.count", "ReleaseType", "ResetRequiredOnUpdate",
		}},
		{ResourceType: "Storage", Remove: []string{ // storage.hpp
			"Links/Enclosures", "Links/Enclosures@odata.count", "StorageControllers/*/SupportedControllerProtocols",
			"StorageControllers/*/SupportedDeviceProtocols",
		}},
		{ResourceType: "StorageController", Remove: []string{ // storage_controller.hpp
			"SupportedControllerProtocols", "SupportedDeviceProtocols",
		}},
		{ResourceType: "Task", Remove: []string{ // task.hpp
			"EstimatedDuration",
		}},
		{ResourceType: "Thermal", Remove: []string{ // sensors.hpp
			"Fans/*/SensorNumber", "Redundancy/*/MaxNumSupported", "Temperatures/*/SensorNumber",
		}},
		{ResourceType: "ThermalMetrics", Remove: []string{ // thermal_metrics.hpp
			"TemperatureReadingsCelsius/*/DeviceName", "TemperatureSummaryCelsius",
		}},
		{ResourceType: "Triggers", Remove: []string{ // trigger.hpp
			"MetricIds", "TriggerEnabled",
		}},
		{ResourceType: "UpdateService", Remove: []string{ // update_service.hpp
			"@Redfish.OperationApplyTimeSupport", "Actions/#UpdateService.SimpleUpdate/@Redfish.OperationApplyTimeSupport",
			"HttpPushUriOptions/HttpPushUriApplyTime/ApplyTime@Redfish.AllowableValues",
		}},
	}
}
