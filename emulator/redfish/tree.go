package redfish

// tree is all that the service serves, row by row.
func tree() []resource {
	return []resource{
		// The protocol's own documents (DSP0266, "Redfish-defined URIs").
		{uri: "/redfish", open: true, raw: versions},
		{uri: "/redfish/v1/odata", open: true, shows: showsMachine, raw: serviceDocument},
		{uri: "/redfish/v1/$metadata", open: true, raw: metadata},
		{uri: "/redfish/v1", schema: "ServiceRoot.v1_20_0", open: true, needs: ofManager, shows: showsMachine, read: serviceRoot},

		{uri: "/redfish/v1/SessionService", schema: "SessionService.v1_2_0", needs: ofManager, shows: showsBMC,
			read: sessionService, patch: &sessionServicePatch},
		{uri: "/redfish/v1/SessionService/Sessions", schema: "SessionCollection", needs: ofSessions, shows: showsBMC,
			name: "Sessions", of: "session", create: &sessionCreate},
		{uri: "/redfish/v1/SessionService/Sessions/{session}", schema: "Session.v1_8_0", needs: ofSession, shows: showsBMC,
			read: session, own: ownSession, remove: closeSession},

		{uri: "/redfish/v1/AccountService", schema: "AccountService.v1_18_1", needs: ofUsers, read: accountService},
		{uri: "/redfish/v1/AccountService/Accounts", schema: "ManagerAccountCollection", needs: ofUsers, shows: showsBMC,
			name: "Accounts", of: "account"},
		{uri: "/redfish/v1/AccountService/Accounts/{account}", schema: "ManagerAccount.v1_14_1", needs: ofAccount, shows: showsBMC,
			read: account, own: ownAccount},
		{uri: "/redfish/v1/AccountService/Roles", schema: "RoleCollection", needs: ofManager, name: "Roles", of: "role"},
		{uri: "/redfish/v1/AccountService/Roles/{role}", schema: "Role.v1_3_3", needs: ofManager, read: accountRole},

		{uri: "/redfish/v1/Systems", schema: "ComputerSystemCollection", needs: ofComponents, name: "Systems", of: "system"},
		{uri: "/redfish/v1/Systems/{system}", schema: "ComputerSystem.v1_27_0", needs: ofComponents, shows: showsMachine,
			read: system, patch: &systemPatch, actions: systemActions},
		{uri: "/redfish/v1/Systems/{system}/EthernetInterfaces", schema: "EthernetInterfaceCollection", needs: ofComponents, shows: showsMachine,
			name: "Ethernet Interfaces", of: "nic"},
		{uri: "/redfish/v1/Systems/{system}/EthernetInterfaces/{nic}", schema: "EthernetInterface.v1_12_4", needs: ofComponents, shows: showsMachine,
			read: ethernetInterface},
		{uri: "/redfish/v1/Systems/{system}/Storage", schema: "StorageCollection", needs: ofComponents, shows: showsMachine,
			name: "Storage", of: "storage"},
		{uri: "/redfish/v1/Systems/{system}/Storage/{storage}", schema: "Storage.v1_21_0", needs: ofComponents, shows: showsMachine,
			read: storageSubsystem},
		{uri: "/redfish/v1/Systems/{system}/Storage/{storage}/Controllers", schema: "StorageControllerCollection", needs: ofComponents, shows: showsMachine,
			name: "Storage Controllers", of: "controller"},
		{uri: "/redfish/v1/Systems/{system}/Storage/{storage}/Controllers/{controller}", schema: "StorageController.v1_11_0", needs: ofComponents, shows: showsMachine,
			read: storageController},
		{uri: "/redfish/v1/Systems/{system}/Storage/{storage}/Drives/{drive}", schema: "Drive.v1_22_0", needs: ofComponents, shows: showsMachine,
			read: drive},
		{uri: "/redfish/v1/Systems/{system}/Storage/{storage}/Volumes", schema: "VolumeCollection", needs: ofComponents, shows: showsMachine,
			name: "Volumes", of: "volume"},
		// The slots are here and nowhere else; the manager links to them
		// (manager.go says why).
		{uri: "/redfish/v1/Systems/{system}/VirtualMedia", schema: "VirtualMediaCollection", needs: ofManager, shows: showsBMC,
			name: "Virtual Media", of: "slot"},
		{uri: "/redfish/v1/Systems/{system}/VirtualMedia/{slot}", schema: "VirtualMedia.v1_6_5", needs: ofManager, shows: showsBMC,
			read: virtualMedia, actions: virtualMediaActions},

		{uri: "/redfish/v1/Managers", schema: "ManagerCollection", needs: ofManager, name: "Managers", of: "manager"},
		{uri: "/redfish/v1/Managers/{manager}", schema: "Manager.v1_24_0", needs: ofManager, shows: showsMachine, read: manager},

		{uri: "/redfish/v1/Chassis", schema: "ChassisCollection", needs: ofComponents, name: "Chassis", of: "chassis"},
		{uri: "/redfish/v1/Chassis/{chassis}", schema: "Chassis.v1_28_0", needs: ofComponents, shows: showsMachine, read: chassis},
	}
}
