package command

import (
	"bytes"
	"encoding/binary"
	"slices"
	"unicode/utf16"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// Completion codes of the commands that set parameters: system info (§22.14a)
// and LAN (§23.1).
const (
	noParameter          Code = 0x80
	setAlreadyInProgress Code = 0x81 // another client is setting parameters
	readOnly             Code = 0x82
)

const (
	// revision is the parameter revision of all parameters (§22.14b, §23.2).
	revision               = 0x11
	onlyRevision           = 1 << 7
	setInProgressParameter = 0 // number of the parameter "set in progress"

	setComplete = 0
	setBegun    = 1
	setCommit   = 2
)

// setInProgress is parameter 0 of a parameter table. It shows that a client is
// setting parameters, and locks nobody out. Parameters take effect at once, so
// there is nothing to commit; "commit" is accepted because ipmitool sends it
// and gives up on an error.
type setInProgress byte

func (p *setInProgress) set(data []byte) error {
	switch {
	case len(data) != 1:
		return DataLengthInvalid
	case data[0] > setCommit:
		return InvalidDataField
	case data[0] == setCommit:
		return nil
	case data[0] == setBegun && *p == setBegun:
		return setAlreadyInProgress
	}
	*p = setInProgress(data[0])
	return nil
}

// Tables of stored parameters, as bmc.Parameter numbers them.
const (
	lanTable  = 0
	infoTable = 1
	pefTable  = 2
	oemTable  = 3 // values that a vendor's OEM commands store
)

const (
	infoBlock = 16 // bytes of a block
	// infoHeader is the encoding and length that precede a text.
	infoHeader = 2
	// infoBlocks is the number of blocks of the longest text.
	infoBlocks = (255 + infoHeader + infoBlock - 1) / infoBlock
)

// Text encodings (table 22-16c).
const (
	latin1  = 0
	utf8Enc = 1
	unicode = 2
)

// systemInfoState is the volatile state of the system info parameters.
type systemInfoState struct {
	setInProgress setInProgress
	// part holds the texts of which not all blocks have come yet, by parameter.
	part map[byte]*partialText
	// runningSystem identifies the boot that the volatile texts belong to.
	runningSystem volatileAccess
	texts         map[byte]string
}

// partialText is a text that is being written in blocks.
type partialText struct {
	data     [infoBlocks * infoBlock]byte
	received uint32 // bit mask of the blocks that have come
}

// infoParameter is a system info parameter that holds a text.
type infoParameter struct {
	read  func(x *Request) string
	write func(x *Request, text string) error // nil: read-only
}

// infoParameters are the system info parameters (table 22-16c).
var infoParameters = map[byte]infoParameter{
	1: {read: func(x *Request) string { return x.machine().BIOSVersion() }}, // the firmware reports its version itself
	2: {read: func(x *Request) string { return x.machine().Asset.HostName }, write: setSystemName},
	3: {read: func(x *Request) string { return string(x.bmc().Channel.Parameter(infoTable, 3, 0)) }, write: setPrimarySystem},
	4: {read: runningSystemName, write: setVolatileText(4)},
	5: {read: volatileText(5), write: setVolatileText(5)},
	6: {read: getBMCURL},
	7: {read: volatileText(7), write: setVolatileText(7)},
}

// setSystemName sets the system name, which Redfish shows as
// ComputerSystem.HostName.
func setSystemName(x *Request, text string) error {
	a := *x.machine().Asset
	a.HostName = text
	return x.applyMachine(machine.SetAsset{Asset: a})
}

func setPrimarySystem(x *Request, text string) error {
	_, err := x.applyBMC(bmc.SetParameter{Parameter: bmc.Parameter{Table: infoTable, Param: 3, Data: []byte(text)}})
	return err
}

// volatileText returns a text that the running system has set. It is dropped
// when the machine is reset or switched off.
func volatileText(param byte) func(x *Request) string {
	return func(x *Request) string {
		if i := &x.State.info; !i.runningSystem.expired(x.machine()) {
			return i.texts[param]
		}
		return ""
	}
}

// runningSystemName returns the name of the running operating system: the one
// that it has set, or the one that the machine has booted.
func runningSystemName(x *Request) string {
	m := x.machine()
	if name := volatileText(4)(x); name != "" || m.OS == nil || m.Phase != machine.Running {
		return name
	}
	return m.OS.Name
}

func setVolatileText(param byte) func(x *Request, text string) error {
	return func(x *Request, text string) error {
		i, m := &x.State.info, x.machine()
		if i.texts == nil || i.runningSystem.expired(m) {
			i.texts = map[byte]string{}
			i.runningSystem = volatileAccess{boots: m.Boots, on: m.Power != machine.PowerOff}
		}
		i.texts[param] = text
		return nil
	}
}

// getBMCURL returns the URL of the BMC's web service.
func getBMCURL(x *Request) string {
	n, all := x.bmc().Network(), x.bmc().Addresses()
	if !n.HTTPS.On || len(all) == 0 {
		return ""
	}
	return "https://" + hostPort(all[0], n.HTTPS.Port)
}

// encodeInfo returns a text with its header, padded to whole blocks, at least
// one.
func encodeInfo(text string) []byte {
	text = text[:min(len(text), 255)]
	encoding := byte(latin1)
	if slices.ContainsFunc([]byte(text), func(b byte) bool { return b >= 0x80 }) {
		encoding = utf8Enc
	}
	b := append([]byte{encoding, byte(len(text))}, text...)
	return append(b, make([]byte, (infoBlock-len(b)%infoBlock)%infoBlock)...)
}

// decodeInfo decodes a text.
func decodeInfo(encoding byte, b []byte) string {
	var units []uint16
	switch encoding {
	case utf8Enc:
		return string(bytes.ToValidUTF8(b, []byte("\ufffd")))
	case unicode:
		for ; len(b) >= 2; b = b[2:] {
			units = append(units, binary.LittleEndian.Uint16(b))
		}
		return string(utf16.Decode(units))
	}
	out := make([]rune, len(b)) // ISO 8859-1 is the beginning of Unicode
	for i := range b {
		out[i] = rune(b[i])
	}
	return string(out)
}

// blocks returns how many blocks a text has whose first block has come.
func (p *partialText) blocks() int {
	return (int(p.data[1]) + infoHeader + infoBlock - 1) / infoBlock
}

// complete reports whether all blocks have come.
func (p *partialText) complete() bool {
	all := uint32(1)<<max(p.blocks(), 1) - 1
	return p.received&all == all
}

// setSystemInfo handles Set System Info Parameters (§22.14a). A text comes in
// blocks and takes effect with the last one.
func setSystemInfo(x *Request) error {
	param, data, i := x.data[0], x.data[1:], &x.State.info
	if param == setInProgressParameter {
		return i.setInProgress.set(data)
	}
	row, ok := infoParameters[param]
	switch {
	case !ok:
		return noParameter
	case row.write == nil:
		return readOnly
	case len(data) != 1+infoBlock:
		return DataLengthInvalid
	case int(data[0]) >= infoBlocks:
		return ParameterOutOfRange
	case data[0] == 0 && data[1] > unicode:
		return InvalidDataField
	}
	p := i.part[param]
	if p == nil { // blocks that are not written keep their content
		p = new(partialText)
		n := copy(p.data[:], encodeInfo(row.read(x)))
		p.received = 1<<(n/infoBlock) - 1
		if i.part == nil {
			i.part = map[byte]*partialText{}
		}
		i.part[param] = p
	}
	if data[0] == 0 {
		p.received &^= uint32(1)<<infoBlocks - 1 // block 0 begins a new text
	}
	copy(p.data[int(data[0])*infoBlock:], data[1:])
	p.received |= 1 << data[0]
	if !p.complete() {
		return nil
	}
	delete(i.part, param)
	return row.write(x, decodeInfo(p.data[0]&0x0f, p.data[infoHeader:infoHeader+int(p.data[1])]))
}

// getSystemInfo handles Get System Info Parameters (§22.14b).
func getSystemInfo(x *Request) error {
	param, i := x.data[1], &x.State.info
	if p := oemInfo(x, param); p != nil && x.data[0]&^onlyRevision == 0 {
		return p.get(x)
	}
	row, ok := infoParameters[param]
	if len(x.data) != 4 {
		return DataLengthInvalid
	}
	switch {
	case x.data[0]&^onlyRevision != 0:
		return InvalidDataField
	case !ok && param != setInProgressParameter:
		return noParameter
	}
	x.put(revision)
	switch {
	case x.data[0]&onlyRevision != 0:
		return nil
	case param == setInProgressParameter:
		x.put(byte(i.setInProgress))
		return nil
	}
	text := encodeInfo(row.read(x))
	if p := i.part[param]; p != nil { // reads return blocks that were written already
		text = p.data[:max(p.blocks(), 1)*infoBlock]
	}
	return x.putInfoBlock(text)
}
