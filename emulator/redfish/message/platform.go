package message

// The messages about the server and its devices.
var (
	UnhandledExceptionDetectedAfterReset  = zero{platform, 0, "UnhandledExceptionDetectedAfterReset", Critical, "An exception that nothing handled has reset the server.", "Read the diagnostic data, if there are any."}
	OperatingSystemCrash                  = zero{platform, 0, "OperatingSystemCrash", Critical, "The operating system has crashed.", "Read the diagnostic data, if there are any."}
	PlatformError                         = zero{platform, 0, "PlatformError", Warning, "The server has met an error.", "Read the diagnostic data, if there are any."}
	PlatformErrorAtLocation               = one{platform, 0, "PlatformErrorAtLocation", Warning, "The server has met an error at %1.", "Read the diagnostic data, if there are any."}
	NVRAMClearAsserted                    = zero{platform, 1, "NVRAMClearAsserted", Warning, "The switch that clears the settings is on.", "Turn the switch off."}
	SecurityBypassAsserted                = zero{platform, 1, "SecurityBypassAsserted", Warning, "The switch that bypasses passwords is on.", "Turn the switch off."}
	PlatformReset                         = one{platform, 2, "PlatformReset", OK, "The server was reset: %1.", "None."}
	PlatformResetWatchdogTimer            = one{platform, 2, "PlatformResetWatchdogTimer", Warning, "The watchdog has reset the server: %1.", "Read the diagnostic data, if there are any."}
	PowerBrake                            = one{platform, 3, "PowerBrake", Warning, "%1 is slowed down to save power.", "Read the diagnostic data, if there are any."}
	VoltageRegulatorFault                 = one{platform, 3, "VoltageRegulatorFault", Critical, "The voltage regulator %1 has failed.", "Check the part and its connectors, and read the diagnostic data, if there are any."}
	MemoryRowRemappingError               = one{platform, 3, "MemoryRowRemappingError", Critical, "Rows of the memory %1 could not be replaced by spare ones.", "Check the part and its connectors, and read the diagnostic data, if there are any."}
	MemoryRowRemappingPending             = one{platform, 3, "MemoryRowRemappingPending", Warning, "Rows of the memory %1 wait to be replaced by spare ones.", "Read the diagnostic data, if there are any."}
	MemoryUncorrectableError              = one{platform, 3, "MemoryUncorrectableError", Critical, "The memory %1 has met an error that it could not correct.", "Check the part and its connectors, and read the diagnostic data, if there are any."}
	MemoryContainedError                  = one{platform, 3, "MemoryContainedError", Warning, "The memory %1 has met an error that it could not correct, and kept it from spreading.", "Check the part and its connectors, and read the diagnostic data, if there are any."}
	PCIeLinkSpeedChange                   = two{platform, 3, "PCIeLinkSpeedChange", Critical, "The link of the PCIe device %1 now runs at %2 Gbit/s.", "Check the part and its connectors, and read the diagnostic data, if there are any."}
	PCIeLinkWidthChange                   = two{platform, 3, "PCIeLinkWidthChange", Critical, "The link of the PCIe device %1 now has the width %2.", "Check the part and its connectors, and read the diagnostic data, if there are any."}
	PCIeLinkTrainingError                 = one{platform, 3, "PCIeLinkTrainingError", Critical, "The PCIe device %1 could not set up its link.", "Check the part and its connectors, and read the diagnostic data, if there are any."}
	PCIeLinkDown                          = one{platform, 3, "PCIeLinkDown", Critical, "The PCIe device %1 has lost its link.", "Check the part and its connectors, and read the diagnostic data, if there are any."}
	PCIeIncorrectLinkSpeed                = one{platform, 3, "PCIeIncorrectLinkSpeed", Critical, "The link of the PCIe device %1 is slower or faster than it should be.", "Check the part and its connectors, and read the diagnostic data, if there are any."}
	PCIeIncorrectLinkWidth                = one{platform, 3, "PCIeIncorrectLinkWidth", Critical, "The link of the PCIe device %1 is narrower or wider than it should be.", "Check the part and its connectors, and read the diagnostic data, if there are any."}
	PCIeUncorrectableError                = one{platform, 3, "PCIeUncorrectableError", Critical, "The PCIe device %1 has met an error that it could not correct.", "Check the part and its connectors, and read the diagnostic data, if there are any."}
	PCIeLinkRestored                      = one{platform, 3, "PCIeLinkRestored", Critical, "The PCIe device %1 has its link again.", "Check the part and its connectors, and read the diagnostic data, if there are any."}
	DeviceDisabled                        = one{platform, 3, "DeviceDisabled", Warning, "The device %1 was disabled or halted.", "Read the diagnostic data, if there are any."}
	DeviceManagementInterfaceUnresponsive = one{platform, 3, "DeviceManagementInterfaceUnresponsive", OK, "The device %1 does not answer its management interface.", "Read the diagnostic data, if there are any."}
	DeviceMissing                         = one{platform, 3, "DeviceMissing", Critical, "The device %1 is gone.", "Read the diagnostic data, if there are any."}
	DeviceAssemblyDataInaccessible        = one{platform, 3, "DeviceAssemblyDataInaccessible", Warning, "The assembly data of the device %1 cannot be read.", "Read the diagnostic data, if there are any."}
	DeviceAssemblyDataMalformed           = one{platform, 3, "DeviceAssemblyDataMalformed", Warning, "The assembly data of the device %1 make no sense.", "Read the diagnostic data, if there are any."}
	DeviceWatchdogTimeout                 = one{platform, 3, "DeviceWatchdogTimeout", Critical, "The watchdog of the device %1 has run out.", "Read the diagnostic data, if there are any."}
	DeviceBootTimeout                     = one{platform, 3, "DeviceBootTimeout", Critical, "The device %1 took too long to boot.", "Read the diagnostic data, if there are any."}
	DeviceSecureBootFailure               = one{platform, 3, "DeviceSecureBootFailure", Critical, "The device %1 did not pass secure boot.", "Read the diagnostic data, if there are any."}
	DeviceInRecovery                      = two{platform, 3, "DeviceInRecovery", Critical, "The device %1 is in recovery: %2", "Read the diagnostic data, if there are any."}
	DeviceManagementInterfaceError        = two{platform, 3, "DeviceManagementInterfaceError", OK, "The management interface of the device %1 has met an error: %2", "Read the diagnostic data, if there are any."}
)

// Platform lists the messages of the Platform registry (DSP8011).
var Platform = []Entry{
	UnhandledExceptionDetectedAfterReset, OperatingSystemCrash, PlatformError, PlatformErrorAtLocation,
	NVRAMClearAsserted, SecurityBypassAsserted, PlatformReset, PlatformResetWatchdogTimer,
	PowerBrake, VoltageRegulatorFault, MemoryRowRemappingError, MemoryRowRemappingPending,
	MemoryUncorrectableError, MemoryContainedError, PCIeLinkSpeedChange, PCIeLinkWidthChange,
	PCIeLinkTrainingError, PCIeLinkDown, PCIeIncorrectLinkSpeed, PCIeIncorrectLinkWidth,
	PCIeUncorrectableError, PCIeLinkRestored, DeviceDisabled, DeviceManagementInterfaceUnresponsive,
	DeviceMissing, DeviceAssemblyDataInaccessible, DeviceAssemblyDataMalformed, DeviceWatchdogTimeout,
	DeviceBootTimeout, DeviceSecureBootFailure, DeviceInRecovery, DeviceManagementInterfaceError,
}
