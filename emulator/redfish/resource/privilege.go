package resource

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

// Privilege is a right to operate (DSP0266, "Privilege model").
type Privilege = bmc.Privilege

const (
	Login               = bmc.PrivLogin
	ConfigureManager    = bmc.PrivConfigureManager
	configureUsers      = bmc.PrivConfigureUsers
	configureComponents = bmc.PrivConfigureComponents
	configureSelf       = bmc.PrivConfigureSelf

	noAuth Privilege = "NoAuth" // of the registry alone: nobody needs to log in
)

// Privileges says which privileges each operation on a resource asks for: any one
// of the list. Actions are a POST.
type Privileges struct {
	Get, Patch, Post, Delete []Privilege
	// Properties ask for other privileges than the resource does to be changed.
	Properties map[string][]Privilege
}

// What groups of entities need.
var (
	ofManager      = NeedsTo([]Privilege{Login}, ConfigureManager)
	ofComponents   = NeedsTo([]Privilege{Login}, configureComponents)
	ofEither       = NeedsTo([]Privilege{Login}, ConfigureManager, configureComponents)
	ofUsers        = NeedsTo([]Privilege{Login}, configureUsers)
	ofCertificates = NeedsTo([]Privilege{ConfigureManager}, ConfigureManager)
	ofSubscription = NeedsTo([]Privilege{Login}, ConfigureManager, configureSelf)
	ofAccount      = NeedsTo([]Privilege{ConfigureManager, configureUsers, configureSelf}, configureUsers)
	ofSessions     = Privileges{
		Get: []Privilege{Login}, Patch: []Privilege{ConfigureManager}, Post: []Privilege{Login}, Delete: []Privilege{ConfigureManager},
	}
	ofSession = Privileges{
		Get: []Privilege{ConfigureManager, configureSelf}, Patch: []Privilege{ConfigureManager},
		Post: []Privilege{ConfigureManager}, Delete: []Privilege{ConfigureManager, configureSelf},
	}
	ofRoot = NeedsTo([]Privilege{Login, noAuth}, ConfigureManager)
)

func NeedsTo(read []Privilege, write ...Privilege) Privileges {
	return Privileges{Get: read, Patch: write, Post: write, Delete: write}
}

// Mappings are the Redfish operation-to-privilege mapping (DSP8011,
// Redfish_1.8.0_PrivilegeRegistry) for all its entities. It lets a HEAD of an
// account pass with Login; here a HEAD asks for what a GET asks for.
var Mappings = []struct {
	needs    Privileges
	Entities string
}{
	{ofComponents, `
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
	{ofUsers, `
		AccountService ManagerAccountCollection`},
	{ofManager, `
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
	{ofEither, `
		Aggregate AggregateCollection EventDestinationCollection RegisteredClientCollection`},
	{ofCertificates, `
		Certificate CertificateCollection CertificateEnrollment CertificateEnrollmentCollection CertificateLocations`},
	{ofSubscription, `
		EventDestination RegisteredClient`},
	{ofAccount, `
		ManagerAccount`},
	{ofRoot, `
		ServiceRoot`},
	{ofSession, `
		Session`},
	{ofSessions, `
		SessionCollection`},
}

// Overrides of what entities need. Operations that one does not name are as
// elsewhere.
var (
	byManager    = NeedsTo(nil, ConfigureManager)
	byComponents = NeedsTo(nil, configureComponents)
	onComponents = NeedsTo([]Privilege{configureComponents}, configureComponents)
)

// SubordinateOverrides are the registry's subordinate overrides: what entities need where
// those of under are above them, in that order, with others in between or not
// (DSP0266, "Subordinate override").
var SubordinateOverrides = []struct {
	Entities, under string
	needs           Privileges
}{
	{`Certificate CertificateCollection`, `ComputerSystem`, onComponents},
	{`EnvironmentMetrics`, `Processor`, byComponents},
	{`EnvironmentMetrics`, `Memory`, byComponents},
	{`EnvironmentMetrics`, `Drive`, byComponents},
	{`EnvironmentMetrics`, `PCIeDevice`, byComponents},
	{`EnvironmentMetrics`, `StorageController`, byComponents},
	{`EnvironmentMetrics`, `Port`, byComponents},
	{`EthernetInterface`, `Manager EthernetInterfaceCollection`, byManager},
	{`EthernetInterfaceCollection`, `Manager`, byManager},
	{`LogServiceCollection`, `ComputerSystem`, byComponents},
	{`LogServiceCollection`, `Chassis`, byComponents},
	{`LogService`, `ComputerSystem LogServiceCollection`, byComponents},
	{`LogService`, `Chassis LogServiceCollection`, byComponents},
	{`LogEntryCollection`, `ComputerSystem LogServiceCollection LogService`, byComponents},
	{`LogEntryCollection`, `Chassis LogServiceCollection LogService`, byComponents},
	{`LogEntry`, `ComputerSystem LogServiceCollection LogService LogEntryCollection`, byComponents},
	{`LogEntry`, `Chassis LogServiceCollection LogService LogEntryCollection`, byComponents},
}

// Properties are the registry's property overrides: what changing them needs,
// instead of what changing the rest of the entity does (DSP0266, "Property
// override").
var Properties = map[string]map[string][]Privilege{
	"ManagerAccount": {"Password": {configureUsers, configureSelf}},
}

// Needed is what an entity needs that is below others, the outermost first.
func Needed(name string, above []string) (Privileges, error) {
	var n Privileges
	for _, m := range Mappings {
		if slices.Contains(strings.Fields(m.Entities), name) {
			n = m.needs
			n.Properties = Properties[name]
		}
	}
	if n.Get == nil {
		return n, fmt.Errorf("the privilege registry has no %s", name)
	}
	for _, o := range SubordinateOverrides {
		if !slices.Contains(strings.Fields(o.Entities), name) || !follow(strings.Fields(o.under), above) {
			continue
		}
		for _, op := range []struct{ to, from *[]Privilege }{
			{&n.Get, &o.needs.Get}, {&n.Patch, &o.needs.Patch}, {&n.Post, &o.needs.Post}, {&n.Delete, &o.needs.Delete},
		} {
			if *op.from != nil {
				*op.to = *op.from
			}
		}
	}
	return n, nil
}

// follow says whether names come in all one after the other, with or without
// others in between.
func follow(names, all []string) bool {
	for _, a := range all {
		if len(names) > 0 && names[0] == a {
			names = names[1:]
		}
	}
	return len(names) == 0
}

// To lists the privileges for an HTTP method.
func (n *Privileges) To(method string) []Privilege {
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

// AssignNeeds gives each row what its entity needs at its place.
func AssignNeeds(tree []Row) error {
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
		n, err := Needed(TypeName(r.Schema), above)
		switch {
		case err == nil:
			r.Privileges = n
		case r.Privileges.Get == nil: // a vendor's own says it itself
			return fmt.Errorf("redfish: %s: %w", r.URI, err)
		}
	}
	return nil
}
