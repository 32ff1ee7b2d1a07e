package resource

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

// Privilege is a right to operate (DSP0266, "Privilege model").
type Privilege = bmc.Privilege

// Privileges of the standard.
const (
	Login               = bmc.PrivLogin
	ConfigureManager    = bmc.PrivConfigureManager
	configureUsers      = bmc.PrivConfigureUsers
	configureComponents = bmc.PrivConfigureComponents
	configureSelf       = bmc.PrivConfigureSelf

	noAuth Privilege = "NoAuth" // in the registry only: no login is needed
)

// Privileges lists the privileges that each operation on a resource requires. Any one of a
// list is enough. An action is a POST.
type Privileges struct {
	Get, Patch, Post, Delete []Privilege
	// Properties lists the properties whose change requires other privileges than the resource does.
	Properties map[string][]Privilege
}

// The privileges that groups of entities require.
var (
	managerPrivileges            = ReadWritePrivileges([]Privilege{Login}, ConfigureManager)
	componentPrivileges          = ReadWritePrivileges([]Privilege{Login}, configureComponents)
	managerOrComponentPrivileges = ReadWritePrivileges([]Privilege{Login}, ConfigureManager, configureComponents)
	userPrivileges               = ReadWritePrivileges([]Privilege{Login}, configureUsers)
	certificatePrivileges        = ReadWritePrivileges([]Privilege{ConfigureManager}, ConfigureManager)
	subscriptionPrivileges       = ReadWritePrivileges([]Privilege{Login}, ConfigureManager, configureSelf)
	accountPrivileges            = ReadWritePrivileges([]Privilege{ConfigureManager, configureUsers, configureSelf}, configureUsers)
	sessionCollectionPrivileges  = Privileges{
		Get: []Privilege{Login}, Patch: []Privilege{ConfigureManager}, Post: []Privilege{Login}, Delete: []Privilege{ConfigureManager},
	}
	sessionPrivileges = Privileges{
		Get: []Privilege{ConfigureManager, configureSelf}, Patch: []Privilege{ConfigureManager},
		Post: []Privilege{ConfigureManager}, Delete: []Privilege{ConfigureManager, configureSelf},
	}
	rootPrivileges = ReadWritePrivileges([]Privilege{Login, noAuth}, ConfigureManager)
)

// ReadWritePrivileges returns the privileges of an entity whose write operations all
// require the same ones.
func ReadWritePrivileges(read []Privilege, write ...Privilege) Privileges {
	return Privileges{Get: read, Patch: write, Post: write, Delete: write}
}

// Mappings is the Redfish operation-to-privilege mapping (DSP8011,
// Redfish_1.8.0_PrivilegeRegistry) of all its entities. The registry lets a HEAD of an
// account pass with Login; here a HEAD requires what a GET requires.
var Mappings = []struct {
	privileges Privileges
	Entities   string
}{
	{componentPrivileges, `
		AccelerationFunction AccelerationFunctionCollection AddressPool AddressPoolCollection Application
		ApplicationCollection Assembly AutomationInstrumentation AutomationNode AutomationNodeCollection Bios
		BootOption BootOptionCollection CXLLogicalDevice CXLLogicalDeviceCollection Cable CableCollection Chassis
		ChassisCollection Circuit CircuitCollection ComputerSystem ComputerSystemCollection Connection
		ConnectionCollection Container ContainerCollection ContainerImage ContainerImageCollection CoolantConnector
		CoolantConnectorCollection CoolingLoop CoolingLoopCollection CoolingUnit CoolingUnitCollection Drive
		DriveCollection DriveMetrics Endpoint EndpointCollection EndpointGroup EndpointGroupCollection
		EthernetInterface EthernetInterfaceCollection Fabric FabricAdapter FabricAdapterCollection FabricCollection
		Facility FacilityCollection Filter FilterCollection GraphicsController GraphicsControllerCollection
		JobDocument JobDocumentCollection JobExecutor JobExecutorCollection LeakDetection LeakDetector
		LeakDetectorCollection MediaController MediaControllerCollection Memory MemoryChunks MemoryChunksCollection
		MemoryCollection MemoryDomain MemoryDomainCollection MemoryMetrics MemoryRegion MemoryRegionCollection
		NetworkAdapter NetworkAdapterCollection NetworkDeviceFunction NetworkDeviceFunctionCollection
		NetworkInterface NetworkInterfaceCollection NetworkPort NetworkPortCollection OperatingConfig
		OperatingConfigCollection OperatingSystem Outlet OutletCollection OutletGroup OutletGroupCollection
		PCIeDevice PCIeDeviceCollection PCIeFunction PCIeFunctionCollection PCIeSlots Port PortCollection
		PortMetrics PowerDistribution PowerDistributionCollection PowerDistributionMetrics Processor
		ProcessorCollection ProcessorMetrics Pump PumpCollection Reservoir ReservoirCollection ResourceBlock
		ResourceBlockCollection RouteEntry RouteEntryCollection RouteSetEntry RouteSetEntryCollection SecureBoot
		SecureBootDatabase SecureBootDatabaseCollection Sensor SensorCollection Signature SignatureCollection
		SimpleStorage SimpleStorageCollection SoftwareInventory SoftwareInventoryCollection Storage
		StorageCollection StorageController StorageControllerCollection StorageControllerMetrics StorageMetrics
		Switch SwitchCollection SwitchMetrics TelemetryData TelemetryDataCollection USBController
		USBControllerCollection UpdateService UpdateServiceCapabilities VCATEntry VCATEntryCollection
		VirtualCXLSwitch VirtualCXLSwitchCollection VirtualPCI2PCIBridge VirtualPCI2PCIBridgeCollection Volume
		VolumeCollection Zone ZoneCollection`},
	{userPrivileges, `
		AccountService ManagerAccountCollection`},
	{managerPrivileges, `
		ActionInfo AggregationService AggregationSource AggregationSourceCollection AllowDeny AllowDenyCollection
		AttributeRegistry Battery BatteryCollection BatteryMetrics CertificateService ComponentIntegrity
		ComponentIntegrityCollection CompositionReservation CompositionReservationCollection CompositionService
		ConnectionMethod ConnectionMethodCollection Control ControlCollection EnvironmentMetrics EventService
		ExternalAccountProvider ExternalAccountProviderCollection Fan FanCollection Heater HeaterCollection
		HeaterMetrics HostInterface HostInterfaceCollection Job JobCollection JobService JsonSchemaFile
		JsonSchemaFileCollection Key KeyCollection KeyPolicy KeyPolicyCollection KeyService License
		LicenseCollection LicenseService LogEntry LogEntryCollection LogService LogServiceCollection Manager
		ManagerCollection ManagerDiagnosticData ManagerNetworkProtocol MessageRegistry MessageRegistryFile
		MessageRegistryFileCollection MetricDefinition MetricDefinitionCollection MetricReport
		MetricReportCollection MetricReportDefinition MetricReportDefinitionCollection NetworkAdapterMetrics
		NetworkDeviceFunctionMetrics OutboundConnection OutboundConnectionCollection Power PowerDomain
		PowerDomainCollection PowerEquipment PowerSubsystem PowerSupply PowerSupplyCollection PowerSupplyMetrics
		PrivilegeRegistry Role RoleCollection SecurityPolicy SerialInterface SerialInterfaceCollection
		ServiceConditions SessionService Task TaskCollection TaskService TelemetryService Thermal ThermalEquipment
		ThermalMetrics ThermalSubsystem Triggers TriggersCollection TrustedComponent TrustedComponentCollection
		VLanNetworkInterface VLanNetworkInterfaceCollection VirtualMedia VirtualMediaCollection`},
	{managerOrComponentPrivileges, `
		Aggregate AggregateCollection EventDestinationCollection RegisteredClientCollection`},
	{certificatePrivileges, `
		Certificate CertificateCollection CertificateEnrollment CertificateEnrollmentCollection CertificateLocations`},
	{subscriptionPrivileges, `
		EventDestination RegisteredClient`},
	{accountPrivileges, `
		ManagerAccount`},
	{rootPrivileges, `
		ServiceRoot`},
	{sessionPrivileges, `
		Session`},
	{sessionCollectionPrivileges, `
		SessionCollection`},
}

// Overrides of the privileges of entities. An operation without an override keeps the
// privileges of the entity.
var (
	managerOverride       = ReadWritePrivileges(nil, ConfigureManager)
	componentOverride     = ReadWritePrivileges(nil, configureComponents)
	componentReadOverride = ReadWritePrivileges([]Privilege{configureComponents}, configureComponents)
)

// SubordinateOverrides lists the subordinate overrides of the registry: the privileges of
// entities below the resources named in targets, in that order, with or without others in
// between (DSP0266, "Subordinate override").
var SubordinateOverrides = []struct {
	Entities, targets string
	privileges        Privileges
}{
	{`Certificate CertificateCollection`, `ComputerSystem`, componentReadOverride},
	{`EnvironmentMetrics`, `Processor`, componentOverride},
	{`EnvironmentMetrics`, `Memory`, componentOverride},
	{`EnvironmentMetrics`, `Drive`, componentOverride},
	{`EnvironmentMetrics`, `PCIeDevice`, componentOverride},
	{`EnvironmentMetrics`, `StorageController`, componentOverride},
	{`EnvironmentMetrics`, `Port`, componentOverride},
	{`EthernetInterface`, `Manager EthernetInterfaceCollection`, managerOverride},
	{`EthernetInterfaceCollection`, `Manager`, managerOverride},
	{`LogServiceCollection`, `ComputerSystem`, componentOverride},
	{`LogServiceCollection`, `Chassis`, componentOverride},
	{`LogService`, `ComputerSystem LogServiceCollection`, componentOverride},
	{`LogService`, `Chassis LogServiceCollection`, componentOverride},
	{`LogEntryCollection`, `ComputerSystem LogServiceCollection LogService`, componentOverride},
	{`LogEntryCollection`, `Chassis LogServiceCollection LogService`, componentOverride},
	{`LogEntry`, `ComputerSystem LogServiceCollection LogService LogEntryCollection`, componentOverride},
	{`LogEntry`, `Chassis LogServiceCollection LogService LogEntryCollection`, componentOverride},
}

// Properties lists the property overrides of the registry: the privileges that changing a
// property requires instead of those of its entity (DSP0266, "Property override").
var Properties = map[string]map[string][]Privilege{
	"ManagerAccount": {"Password": {configureUsers, configureSelf}},
}

// EntityPrivileges returns the privileges of an entity that is below others, outermost
// first. It returns an error when the registry does not have the entity.
func EntityPrivileges(name string, above []string) (Privileges, error) {
	var n Privileges
	for _, m := range Mappings {
		if slices.Contains(strings.Fields(m.Entities), name) {
			n = m.privileges
			n.Properties = Properties[name]
		}
	}
	if n.Get == nil {
		return n, fmt.Errorf("the privilege registry has no %s", name)
	}
	for _, o := range SubordinateOverrides {
		if !slices.Contains(strings.Fields(o.Entities), name) || !containsInOrder(strings.Fields(o.targets), above) {
			continue
		}
		for _, op := range []struct{ to, from *[]Privilege }{
			{&n.Get, &o.privileges.Get}, {&n.Patch, &o.privileges.Patch}, {&n.Post, &o.privileges.Post}, {&n.Delete, &o.privileges.Delete},
		} {
			if *op.from != nil {
				*op.to = *op.from
			}
		}
	}
	return n, nil
}

// containsInOrder reports whether all contains the names in their order, with or without
// others in between.
func containsInOrder(names, all []string) bool {
	for _, a := range all {
		if len(names) > 0 && names[0] == a {
			names = names[1:]
		}
	}
	return len(names) == 0
}

// ForMethod returns the privileges of which an HTTP method requires one.
func (n *Privileges) ForMethod(method string) []Privilege {
	switch method {
	case "PATCH", "PUT":
		return n.Patch
	case "POST":
		return n.Post
	case "DELETE":
		return n.Delete
	}
	return n.Get
}

// AssignPrivileges sets the privileges of each row from the privilege registry, by its
// entity and its place in the tree. It returns an error for a row whose entity the registry
// does not have and that does not state its own.
func AssignPrivileges(tree []Row) error {
	types := map[string]string{}
	for i := range tree {
		types[tree[i].URI] = TypeName(tree[i].Schema)
	}
	for i := range tree {
		r := &tree[i]
		if r.Schema == "" { // a document of the protocol
			continue
		}
		var above []string
		for at, c := range r.URI {
			if c == '/' && types[r.URI[:at]] != "" {
				above = append(above, types[r.URI[:at]])
			}
		}
		n, err := EntityPrivileges(TypeName(r.Schema), above)
		switch {
		case err == nil:
			r.Privileges = n
		case r.Privileges.Get == nil: // an OEM row states its own
			return fmt.Errorf("redfish: %s: %w", r.URI, err)
		}
	}
	return nil
}
