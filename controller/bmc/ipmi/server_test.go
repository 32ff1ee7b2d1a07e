package ipmi_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"

	goipmi "github.com/bougou/go-ipmi/pkg/bmc"
	"github.com/bougou/go-ipmi/pkg/hal/mock"
	"github.com/bougou/go-ipmi/pkg/handlers"
	rmcp "github.com/bougou/go-ipmi/pkg/server"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
)

const (
	testUser     = "admin"
	testPassword = "s3cret-Pa55"
)

// server is a BMC: go-ipmi's sessions with this file's commands. Its sessions
// share go-ipmi's codecs with the driver; the emulator's tests check those.
type server struct {
	t     *testing.T
	wire  *wire
	clock *bmctest.Clock
	state *goipmi.BMC

	mu       sync.Mutex
	on       bool
	lit      bool
	flags    [5]byte
	log      [][]byte // records
	fru      []byte
	sdr      [][]byte
	controls []byte // data of each Chassis Control
	seen     map[[2]byte]int
	reserved uint16
	refuse   map[[2]byte][]types.CompletionCode // completion codes of the next answers, by command
	stolen   int                                // reservations that another session takes
	level    byte                               // level of the last request
	guid     [16]byte
	piece    int // length of the longest answer to a read; 0: any
}

// newServer serves a BMC until the test ends.
func newServer(t *testing.T, options ...goipmi.Option) *server {
	t.Helper()
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{
		t: t, clock: &bmctest.Clock{}, wire: &wire{UDPConn: socket},
		fru: serverFRU(), sdr: serverSDR(), seen: map[[2]byte]int{}, refuse: map[[2]byte][]types.CompletionCode{},
	}
	guid := [16]byte{0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x46, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	s.guid = guid
	info := goipmi.DeviceInfo{FirmwareMajor: 7, FirmwareMinor: 0x15, IPMIVersion: 0x02, ManufacturerID: 674}
	s.state = goipmi.New(info, guid, mock.New(), options...)
	s.setPassword(testPassword)
	registry := handlers.NewRegistry()
	handlers.RegisterAllHandlers(registry)
	s.register(registry)
	service := rmcp.NewServer(s.state, s.wire, rmcp.WithHandlerRegistry(registry))
	var running sync.WaitGroup
	running.Go(func() { _ = service.Serve(context.WithoutCancel(t.Context())) })
	t.Cleanup(func() {
		_ = service.Close()
		running.Wait()
	})
	return s
}

func (s *server) setPassword(password string) {
	err := s.state.Users.Upsert(2, func(u *goipmi.User) error {
		u.Name, u.Enabled = testUser, true
		u.SetPassword([]byte(password))
		u.ChannelAccess = map[uint8]goipmi.UserChannelAccess{
			1: {MaxPrivilege: goipmi.PrivilegeLevelAdministrator, Enabled: true},
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) config() bmc.Config {
	s.t.Helper()
	address, err := bmc.ParseAddress("ipmi://" + s.wire.LocalAddr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	return bmc.Config{
		Address: address, Credentials: bmc.Credentials{Username: testUser, Password: testPassword},
		Clock: s.clock, Timeout: 4 * time.Second,
	}
}

// with runs do with the server locked.
func (s *server) with(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// count returns how often a command was carried out.
func (s *server) count(fn types.NetFn, cmd byte) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[[2]byte{byte(fn), cmd}]
}

// fail sets the completion codes of the next answers to a command.
func (s *server) fail(fn types.NetFn, cmd byte, codes ...types.CompletionCode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse[[2]byte{byte(fn), cmd}] = codes
}

const ever = 1000 // number of codes that lasts for any test

func always(code types.CompletionCode) []types.CompletionCode {
	var all []types.CompletionCode
	for range ever {
		all = append(all, code)
	}
	return all
}

// command registers a command, which runs with mu held.
func (s *server) command(r *handlers.Registry, fn types.NetFn, cmd byte, do func(data []byte) ([]byte, types.CompletionCode)) {
	key := [2]byte{byte(fn), cmd}
	r.RegisterFunc(types.Command{NetFn: fn, ID: cmd}, func(_ context.Context, _ *handlers.HandlerContext, data []byte) ([]byte, types.CompletionCode, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen[key]++
		if codes := s.refuse[key]; len(codes) > 0 {
			s.refuse[key] = codes[1:]
			return nil, codes[0], nil
		}
		out, code := do(data)
		return out, code, nil
	})
}

const (
	chassisFn = types.NetFnChassisRequest
	appFn     = types.NetFnAppRequest
	storageFn = types.NetFnStorageRequest
	sensorFn  = types.NetFnSensorEventRequest
)

func (s *server) register(r *handlers.Registry) {
	s.command(r, chassisFn, 0x01, func([]byte) ([]byte, types.CompletionCode) {
		out := []byte{0x40, 0, 0x40}
		if s.on {
			out[0] |= 1
		}
		if s.lit {
			out[2] |= 0x20
		}
		return out, 0
	})
	s.command(r, chassisFn, 0x02, s.control)
	s.command(r, chassisFn, 0x04, func(data []byte) ([]byte, types.CompletionCode) {
		s.lit = len(data) == 0 || data[0] > 0 || len(data) > 1 && data[1]&1 != 0
		return nil, 0
	})
	s.command(r, chassisFn, 0x08, func(data []byte) ([]byte, types.CompletionCode) {
		switch {
		case len(data) == 6 && data[0]&0x7F == 5:
			s.flags = [5]byte(data[1:])
			return nil, 0
		case len(data) == 2 && data[0]&0x7F == 3:
			return nil, 0
		}
		return nil, 0x80
	})
	s.command(r, chassisFn, 0x09, func(data []byte) ([]byte, types.CompletionCode) {
		if len(data) != 3 || data[0] != 5 {
			return nil, 0x80
		}
		return append([]byte{1, 5}, s.flags[:]...), 0
	})
	s.command(r, appFn, 0x59, func(data []byte) ([]byte, types.CompletionCode) {
		const version = "U30 v2.14 (2031)" // 16 bytes: two blocks
		if data[1] != 1 {
			return nil, 0x80
		}
		if data[2] == 0 {
			return append([]byte{0x11, 0, 0, byte(len(version))}, version[:14]...), 0
		}
		return append([]byte{0x11, 1}, append([]byte(version[14:]), make([]byte, 14)...)...), 0
	})
	s.command(r, appFn, 0x37, func([]byte) ([]byte, types.CompletionCode) { return s.guid[:], 0 })
	s.command(r, appFn, 0x3B, func(data []byte) ([]byte, types.CompletionCode) {
		s.level = data[0]
		return data, 0
	})
	s.registerLog(r)
	s.registerStore(r)
}

func (s *server) control(data []byte) ([]byte, types.CompletionCode) {
	s.controls = append(s.controls, data[0])
	switch data[0] {
	case 0, 5:
		s.on = false
	case 1:
		s.on = true
	case 2, 3:
		if !s.on {
			return nil, 0xD5
		}
	default:
		return nil, 0xCC
	}
	if s.on && s.flags[0]&0xC0 == 0x80 {
		s.flags = [5]byte{} // an override for one boot
	}
	return nil, 0
}

func (s *server) registerLog(r *handlers.Registry) {
	s.command(r, storageFn, 0x40, func([]byte) ([]byte, types.CompletionCode) {
		out := make([]byte, 14)
		out[0] = 0x51
		binary.LittleEndian.PutUint16(out[1:], uint16(len(s.log)))
		return out, 0
	})
	s.command(r, storageFn, 0x42, func([]byte) ([]byte, types.CompletionCode) {
		s.reserved++
		return binary.LittleEndian.AppendUint16(nil, s.reserved), 0
	})
	s.command(r, storageFn, 0x43, func(data []byte) ([]byte, types.CompletionCode) {
		id := int(binary.LittleEndian.Uint16(data[2:]))
		if id = max(id, 1); id > len(s.log) {
			return nil, 0xCB
		}
		next := uint16(id + 1)
		if id == len(s.log) {
			next = 0xFFFF
		}
		return append(binary.LittleEndian.AppendUint16(nil, next), s.log[id-1]...), 0
	})
	s.command(r, storageFn, 0x47, func(data []byte) ([]byte, types.CompletionCode) {
		if binary.LittleEndian.Uint16(data) != s.reserved || string(data[2:5]) != "CLR" {
			return nil, 0xC5
		}
		if data[5] == 0xAA {
			s.log = nil
			return []byte{0}, 0 // in progress
		}
		return []byte{1}, 0
	})
}

// event logs a fan that goes critically low.
func (s *server) event() {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := binary.LittleEndian.AppendUint16(nil, uint16(len(s.log)+1))
	r = append(r, 0x02)
	r = binary.LittleEndian.AppendUint32(r, uint32(time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC).Unix()))
	s.log = append(s.log, append(r, 0x20, 0x00, 0x04, 0x04, 0x02, 0x01, 0x52, 0x0A, 0x0B))
}

func (s *server) registerStore(r *handlers.Registry) {
	s.command(r, storageFn, 0x10, func([]byte) ([]byte, types.CompletionCode) {
		return append(binary.LittleEndian.AppendUint16(nil, uint16(len(s.fru))), 0), 0
	})
	s.command(r, storageFn, 0x11, func(data []byte) ([]byte, types.CompletionCode) {
		at, n := int(binary.LittleEndian.Uint16(data[1:])), int(data[3])
		switch {
		case s.piece > 0 && n > s.piece:
			return nil, 0xCA
		case at+n > len(s.fru):
			return nil, 0xC9
		}
		return append([]byte{byte(n)}, s.fru[at:at+n]...), 0
	})
	s.command(r, storageFn, 0x20, func([]byte) ([]byte, types.CompletionCode) {
		out := make([]byte, 14)
		out[0] = 0x51
		binary.LittleEndian.PutUint16(out[1:], uint16(len(s.sdr)))
		return out, 0
	})
	s.command(r, storageFn, 0x22, func([]byte) ([]byte, types.CompletionCode) {
		s.reserved++
		return binary.LittleEndian.AppendUint16(nil, s.reserved), 0
	})
	s.command(r, storageFn, 0x23, func(data []byte) ([]byte, types.CompletionCode) {
		id, at, n := int(binary.LittleEndian.Uint16(data[2:])), int(data[4]), int(data[5])
		if at > 0 && s.stolen > 0 {
			s.stolen--
			s.reserved++
		}
		if at > 0 && binary.LittleEndian.Uint16(data) != s.reserved {
			return nil, 0xC5
		}
		if id >= len(s.sdr) {
			return nil, 0xCB
		}
		record := s.sdr[id]
		if n == 0xFF {
			n = len(record) - at
		}
		if s.piece > 0 && n > s.piece {
			return nil, 0xCA
		}
		next := uint16(id + 1)
		if id == len(s.sdr)-1 {
			next = 0xFFFF
		}
		return append(binary.LittleEndian.AppendUint16(nil, next), record[at:min(at+n, len(record))]...), 0
	})
	s.command(r, sensorFn, 0x2D, func(data []byte) ([]byte, types.CompletionCode) {
		switch data[0] {
		case 1:
			return []byte{0x2B, 0xC0, 0xC0}, 0 // 21.5 °C
		case 2:
			return []byte{0xF6, 0xC0, 0xD0}, 0 // -1 °C, upper critical
		case 3:
			return []byte{0x00, 0xE0}, 0 // unavailable
		case 4:
			return []byte{42, 0xC0, 0xC1}, 0 // lower non-critical
		}
		return nil, 0xCB
	})
}
