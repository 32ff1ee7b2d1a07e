package openbmc

import "github.com/metalab-dev/metalab/emulator/dialect"

// absent removes the properties that no response of bmcweb has [V]: no file of redfish-core that
// makes the type has a literal with the name, and no file that it includes (7debb89). The comment behind a type
// names the file that makes its resources. The list of the names is
// emulator/rack/testdata/bmcweb.txt.
func absent() []dialect.Transform {
	return []dialect.Transform{
		{ResourceType: "AccountService", Remove: []string{ // account_service.hpp
			"AccountLockoutCounterResetAfter", "AccountLockoutCounterResetEnabled", "AuthFailureLoggingThreshold",
			"EnforcePasswordHistoryCount", "LocalAccountAuth", "PasswordExpirationDays", "RequireChangePasswordAction", "Status",
			"SupportedAccountTypes",
		}},
		{ResourceType: "Certificate", Remove: []string{ // certificate_service.hpp
			"CertificateUsageTypes", "Fingerprint", "FingerprintHashAlgorithm", "Issuer/DisplayString", "SerialNumber",
			"SignatureAlgorithm", "Subject/DisplayString",
		}},
		{ResourceType: "CertificateService", Remove: []string{ // certificate_service.hpp
			"Actions/#CertificateService.GenerateCSR/KeyCurveId@Redfish.AllowableValues",
			"Actions/#CertificateService.GenerateCSR/KeyPairAlgorithm@Redfish.AllowableValues",
			"Actions/#CertificateService.GenerateCSR/KeyUsage@Redfish.AllowableValues",
		}},
		{ResourceType: "Chassis", Remove: []string{ // chassis.hpp
			"IndicatorLED@Redfish.AllowableValues", "Links/Fans", "Links/ManagersInChassis", "Links/PowerSupplies",
			"MaxPowerWatts", "MinPowerWatts", "PCIeDevices", "PhysicalSecurity/IntrusionSensor@Redfish.AllowableValues",
			"PhysicalSecurity/IntrusionSensorReArm", "PhysicalSecurity/IntrusionSensorReArm@Redfish.AllowableValues",
			"PoweredByParent", "SKU", "Status/Health", "Status/HealthRollup", "ThermalDirection",
		}},
		{ResourceType: "ComputerSystem", Remove: []string{ // systems.hpp
			"HostWatchdogTimer/TimeoutAction@Redfish.AllowableValues", "HostWatchdogTimer/WarningAction",
			"HostWatchdogTimer/WarningAction@Redfish.AllowableValues", "IndicatorLED@Redfish.AllowableValues", "LastResetCause",
			"MemorySummary/MemoryMirroring", "MemorySummary/Status/HealthRollup", "MemorySummary/TotalSystemPersistentMemoryGiB",
			"PCIeDevices@odata.count", "PCIeFunctions", "PCIeFunctions@odata.count",
			"PowerRestorePolicy@Redfish.AllowableValues", "ProcessorSummary/LogicalProcessorCount",
			"ProcessorSummary/Status/HealthRollup", "ProcessorSummary/ThreadingEnabled", "SKU", "Status/HealthRollup",
		}},
		{ResourceType: "Drive", Remove: []string{ // storage_chassis.hpp
			"@Redfish.OperationApplyTimeSupport", "Actions", "BlockSizeBytes", "CapableSpeedGbs", "DriveFormFactor",
			"EncryptionAbility", "FailurePredicted", "FirmwareVersion", "Identifiers", "Links/Volumes",
			"Links/Volumes@odata.count", "LocationIndicatorActive", "Multipath", "NegotiatedSpeedGbs", "Operations",
			"PhysicalLocation", "Revision", "SlotFormFactor", "Status/Health", "StatusIndicator",
		}},
		{ResourceType: "EnvironmentMetrics", Remove: []string{ // environment_metrics.hpp
			"Actions", "EnergykWh", "FanSpeedsPercent/*/DeviceName", "PowerLimitWatts/ControlMode@Redfish.AllowableValues",
			"TemperatureCelsius", "Voltage",
		}},
		{ResourceType: "EthernetInterface", Remove: []string{ // ethernet.hpp
			"DHCPv6/OperatingMode@Redfish.AllowableValues", "IPv6Enabled", "MaxIPv6StaticAddresses", "PermanentMACAddress",
			"Status/Health", "VLAN/VLANPriority",
		}},
		{ResourceType: "EventDestination", Remove: []string{ // event_service.hpp
			"DeliveryRetryPolicy@Redfish.AllowableValues", "IncludeOriginOfCondition", "Status/Health",
		}},
		{ResourceType: "EventDestinationCollection", Remove: []string{ // event_service.hpp
			"@Redfish.CollectionCapabilities",
		}},
		{ResourceType: "EventService", Remove: []string{ // event_service.hpp
			"Actions/#EventService.SubmitTestEvent/EventType@Redfish.AllowableValues",
			"Actions/#EventService.SubmitTestEvent/MessageSeverity@Redfish.AllowableValues",
			"Actions/#EventService.SubmitTestEvent/Severity@Redfish.AllowableValues", "EventTypesForSubscription",
			"ExcludeMessageId", "ExcludeRegistryPrefix", "IncludeOriginOfConditionSupported", "OriginResourcesSupported",
			"SSEFilterPropertiesSupported/EventType", "SSEFilterPropertiesSupported/SubordinateResources",
			"SSEIncludeOriginOfConditionSupported", "Severities", "Status/Health", "SubordinateResourcesSupported",
		}},
		{ResourceType: "Fan", Remove: []string{ // fan.hpp
			"Location/PartLocation/LocationOrdinalValue", "Location/PartLocation/LocationType", "RatedSpeedRPM", "Replaceable",
		}},
		{ResourceType: "LogEntry", Remove: []string{ // log_services.hpp
			"OriginOfConditionUnavailable", "Persistency",
		}},
		{ResourceType: "LogService", Remove: []string{ // log_services.hpp
			"Actions/#LogService.CollectDiagnosticData/DiagnosticDataType@Redfish.AllowableValues", "AutoClearResolvedEntries",
			"DiagnosticDataDetails", "LogEntryType", "LogPurposes", "Overflow", "Persistency", "Status/Health",
		}},
		{ResourceType: "Manager", Remove: []string{ // managers.hpp
			"Links/ManagerInChassis", "SerialConsole",
		}},
		{ResourceType: "ManagerAccount", Remove: []string{ // account_service.hpp
			"AccountExpiration", "AccountTypes@Redfish.AllowableValues", "RoleId@Redfish.AllowableValues",
		}},
		{ResourceType: "ManagerAccountCollection", Remove: []string{ // account_service.hpp
			"@Redfish.CollectionCapabilities",
		}},
		{ResourceType: "ManagerNetworkProtocol", Remove: []string{ // network_protocol.hpp
			"KVMIP", "SNMP", "SSDP", "VirtualMedia",
		}},
		{ResourceType: "Memory", Remove: []string{ // memory.hpp
			"DeviceLocator", "Enabled", "Links/Processors@odata.count", "Location/PartLocation/LocationOrdinalValue",
			"Location/PartLocation/LocationType",
		}},
		{ResourceType: "MetricReport", Remove: []string{ // metric_report.hpp
			"MetricValues/*/MetricId", "MetricValues@odata.count",
		}},
		{ResourceType: "MetricReportDefinition", Remove: []string{ // metric_report_definition.hpp
			"MetricReportDefinitionType@Redfish.AllowableValues", "Metrics/*/MetricId", "ReportActions@Redfish.AllowableValues",
			"ReportUpdates@Redfish.AllowableValues",
		}},
		{ResourceType: "PCIeDevice", Remove: []string{ // pcie.hpp
			"FirmwareVersion", "Links/Chassis@odata.count", "Slot/Location/PartLocation/LocationOrdinalValue",
			"Slot/Location/PartLocation/LocationType",
		}},
		{ResourceType: "PCIeFunction", Remove: []string{ // pcie.hpp
			"BusNumber", "DeviceNumber", "Enabled", "FunctionNumber", "Links/EthernetInterfaces",
			"Links/EthernetInterfaces@odata.count", "Links/NetworkDeviceFunctions", "Links/NetworkDeviceFunctions@odata.count",
			"Links/StorageControllers", "Links/StorageControllers@odata.count", "SegmentNumber",
		}},
		{ResourceType: "Power", Remove: []string{ // sensors.hpp
			"PowerControl/*/PowerAllocatedWatts", "PowerControl/*/PowerCapacityWatts", "PowerControl/*/PowerMetrics",
			"PowerControl/*/PowerRequestedWatts", "PowerControl/*/RelatedItem", "PowerControl/*/RelatedItem@odata.count",
			"PowerControl@odata.count", "PowerSupplies/*/FirmwareVersion", "PowerSupplies/*/HotPluggable",
			"PowerSupplies/*/InputRanges", "PowerSupplies/*/LastPowerOutputWatts", "PowerSupplies/*/LineInputVoltage",
			"PowerSupplies/*/LineInputVoltageType", "PowerSupplies/*/PowerCapacityWatts", "PowerSupplies/*/PowerSupplyType",
			"PowerSupplies/*/Redundancy@odata.count", "PowerSupplies/*/RelatedItem", "PowerSupplies/*/RelatedItem@odata.count",
			"PowerSupplies@odata.count", "Redundancy/*/MaxNumSupported", "Redundancy/*/RedundancySet@odata.count",
			"Redundancy@odata.count", "Voltages/*/RelatedItem", "Voltages/*/RelatedItem@odata.count", "Voltages/*/SensorNumber",
			"Voltages@odata.count",
		}},
		{ResourceType: "PowerSubsystem", Remove: []string{ // power_subsystem.hpp
			"Allocation", "CapacityWatts", "PowerSupplyRedundancy", "Status/HealthRollup",
		}},
		{ResourceType: "PowerSupply", Remove: []string{ // power_supply.hpp
			"EfficiencyRatings/*/LoadPercent", "InputNominalVoltageType", "InputRanges", "LineInputStatus",
			"Links/PoweringChassis", "Links/PoweringChassis@odata.count", "Location/PartLocation/LocationOrdinalValue",
			"Location/PartLocation/LocationType", "OutputNominalVoltageType", "OutputRails", "PhaseWiringType", "PlugType",
			"PowerCapacityWatts", "PowerSupplyType", "Replaceable",
		}},
		{ResourceType: "Processor", Remove: []string{ // processor.hpp
			"BaseSpeedMHz", "Family", "Location/PartLocation/LocationOrdinalValue", "Location/PartLocation/LocationType",
			"MaxTDPWatts", "OperatingSpeedMHz", "ProcessorId/VendorId", "ProcessorIndex", "ProcessorMemory", "Replaceable",
			"TDPWatts", "TotalEnabledCores", "TotalEnabledThreads", "TurboState",
		}},
		{ResourceType: "Role", Remove: []string{ // roles.hpp
			"AssignedPrivileges@Redfish.AllowableValues",
		}},
		{ResourceType: "Sensor", Remove: []string{ // sensors.hpp
			"Enabled", "LifetimeReading", "ReadingTime", "RelatedItem", "RelatedItem@odata.count", "SensingInterval",
			"SensorResetTime", "Thresholds/LowerCaution/Activation", "Thresholds/LowerCaution/HysteresisReading",
			"Thresholds/LowerCritical/Activation", "Thresholds/LowerCritical/HysteresisReading",
			"Thresholds/UpperCaution/Activation", "Thresholds/UpperCaution/HysteresisReading",
			"Thresholds/UpperCritical/Activation", "Thresholds/UpperCritical/HysteresisReading",
			"Thresholds/UpperFatal/Activation", "Thresholds/UpperFatal/HysteresisReading",
		}},
		{ResourceType: "ServiceRoot", Remove: []string{ // service_root.hpp
			"ProtocolFeaturesSupported/FilterQueryComparisonOperations",
			"ProtocolFeaturesSupported/FilterQueryCompoundOperations", "ProtocolFeaturesSupported/IncludeOriginOfConditionQuery",
			"ProtocolFeaturesSupported/MultipleHTTPRequests", "ProtocolFeaturesSupported/TopSkipQuery",
		}},
		{ResourceType: "Session", Remove: []string{ // redfish_sessions.hpp
			"CreatedTime", "SessionType",
		}},
		{ResourceType: "SessionService", Remove: []string{ // redfish_sessions.hpp
			"AbsoluteSessionTimeout", "AbsoluteSessionTimeoutEnabled", "Status",
		}},
		{ResourceType: "SoftwareInventory", Remove: []string{ // update_service.hpp
			"Links/ActiveTargets", "Links/ActiveTargets@odata.count", "Manufacturer", "ReleaseDate", "ReleaseType",
			"ResetRequiredOnUpdate", "SoftwareId", "WriteProtected",
		}},
		{ResourceType: "Storage", Remove: []string{ // storage.hpp
			"Description", "Links/Enclosures", "Links/Enclosures@odata.count", "Status/Health", "Status/HealthRollup",
			"StorageControllers", "StorageControllers@odata.count",
		}},
		{ResourceType: "StorageController", Remove: []string{ // storage_controller.hpp
			"FirmwareVersion", "Links/PCIeFunctions", "Links/PCIeFunctions@odata.count", "PCIeInterface", "Status/Health",
			"SupportedControllerProtocols", "SupportedDeviceProtocols", "SupportedRAIDTypes",
		}},
		{ResourceType: "Task", Remove: []string{ // task.hpp
			"EstimatedDuration",
		}},
		{ResourceType: "TaskService", Remove: []string{ // task.hpp
			"Actions", "Status/Health",
		}},
		{ResourceType: "TelemetryService", Remove: []string{ // telemetry_service.hpp
			"Actions", "ServiceEnabled",
		}},
		{ResourceType: "Thermal", Remove: []string{ // sensors.hpp
			"Fans/*/HotPluggable", "Fans/*/Redundancy@odata.count", "Fans/*/RelatedItem", "Fans/*/RelatedItem@odata.count",
			"Fans/*/SensorNumber", "Fans@odata.count", "Redundancy/*/MaxNumSupported", "Redundancy/*/RedundancySet@odata.count",
			"Redundancy@odata.count", "Status/HealthRollup", "Temperatures/*/RelatedItem",
			"Temperatures/*/RelatedItem@odata.count", "Temperatures/*/SensorNumber", "Temperatures/*/UpperThresholdFatal",
			"Temperatures@odata.count",
		}},
		{ResourceType: "ThermalMetrics", Remove: []string{ // thermal_metrics.hpp
			"TemperatureReadingsCelsius/*/DeviceName", "TemperatureSummaryCelsius",
		}},
		{ResourceType: "ThermalSubsystem", Remove: []string{ // thermal_subsystem.hpp
			"FanRedundancy", "Status/HealthRollup",
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
