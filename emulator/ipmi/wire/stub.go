// To be replaced by the worker of this package: the names that the engine uses.

package wire

type NetFn byte

const (
	Chassis     NetFn = 0
	Bridge      NetFn = 2
	SensorEvent NetFn = 4
	App         NetFn = 6
	Firmware    NetFn = 8
	Storage     NetFn = 10
	Transport   NetFn = 12
	Group       NetFn = 0x2c
	OEMGroup    NetFn = 0x2e
)

type Privilege byte

const (
	Callback      Privilege = 1
	User          Privilege = 2
	Operator      Privilege = 3
	Administrator Privilege = 4
	OEMPrivilege  Privilege = 5
)

type PayloadType byte

const PayloadIPMI PayloadType = 0

type AuthTypes byte
type Suite struct{ Authentication, Integrity, Confidentiality byte }

var Suites = map[byte]Suite{}

type Request struct {
	To, ToLUN               byte
	NetFn                   NetFn
	From, FromLUN, Seq, Cmd byte
	Data                    []byte
}

func ParseRequest([]byte) (Request, error)                               { return Request{}, nil }
func (Request) AppendResponse(out []byte, code byte, data []byte) []byte { return out }
