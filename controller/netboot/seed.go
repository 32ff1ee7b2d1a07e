package netboot

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/netboot/cpio"
)

// Seed configures the system of a server that no host has, as a data source of cloud-init
// (NoCloud). Such a server boots when it likes: nobody has prepared it.
type Seed struct{ MetaData, UserData []byte }

// SeedDir is the directory in which cloud-init looks for a seed in the system itself
// (cloud-init, "NoCloud": source 1).
const SeedDir = "/var/lib/cloud/seed/nocloud"

// Names of the files of a seed in SeedDir.
const (
	SeedMetaData = "meta-data"
	SeedUserData = "user-data"
)

// seedCmdline makes cloud-init take the seed, whatever data sources its system is built with.
const seedCmdline = consoles + " ds=nocloud"

// initrd returns an initrd with nothing but the seed.
func (s *Seed) initrd() []byte {
	file := func(name string, content []byte) cpio.Entry {
		return cpio.Entry{Name: SeedDir + "/" + name, Mode: cpio.File | 0o600, Content: content}
	}
	return cpio.Append(nil, file(SeedMetaData, s.MetaData), file(SeedUserData, s.UserData))
}

// seedOffer is a seed for one NIC.
type seedOffer struct {
	owner string
	boot  inband.Boot
	seed  *Seed
}

// OfferSeed serves a seed to the NICs with these MAC addresses by PXE, and to no NIC that owner
// was given before. A server that is registered by Know keeps what Know and Open give it. It
// returns why the seed is not offered to some of the addresses: they are invalid, or another
// owner has them.
func (s *Server) OfferSeed(owner string, seed Seed, macs []string) (problems []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	offers := map[string]*seedOffer{}
	for _, text := range macs {
		mac, err := net.ParseMAC(text)
		if err != nil || len(mac) != 6 {
			problems = append(problems, fmt.Sprintf("MAC address %q: want the form 02:00:00:00:00:01", text))
			continue
		}
		if other := s.seeds[mac.String()]; other != nil && other.owner != owner {
			problems = append(problems, fmt.Sprintf("MAC address %s is that of %s, too", mac, other.owner))
			continue
		}
		offers[mac.String()] = &seedOffer{owner: owner, boot: seedBoot(owner, mac.String()), seed: &seed}
	}
	for mac, o := range s.seeds {
		if o.owner == owner && offers[mac] == nil {
			s.withdraw(mac)
		}
	}
	for mac, o := range offers {
		s.seeds[mac] = o
	}
	slices.Sort(problems)
	return problems
}

// WithdrawSeed ends OfferSeed.
func (s *Server) WithdrawSeed(owner string) { s.OfferSeed(owner, Seed{}, nil) }

// withdraw ends the offer to one NIC. The caller holds s.mu.
func (s *Server) withdraw(mac string) {
	delete(s.seeds, mac)
	if s.macs[mac] == nil {
		s.leases.drop(mac)
	}
}

// seedHost begins the host of the boots of seeds, which no UID does.
const seedHost = "seed-"

func seedBoot(owner, mac string) inband.Boot {
	return inband.Boot{Host: seedHost + strings.ReplaceAll(mac, ":", "-"), ID: inband.Digest(owner)}
}

// isSeed reports whether a boot is that of a seed, which may have been withdrawn.
func isSeed(b inband.Boot) bool { return strings.HasPrefix(b.Host, seedHost) }

// offered returns the seed of a boot, nil when it is not offered. The caller holds s.mu.
func (s *Server) offered(b inband.Boot) *Seed {
	mac, ok := strings.CutPrefix(b.Host, seedHost)
	if o := s.seeds[strings.ReplaceAll(mac, "-", ":")]; ok && o != nil && o.boot == b {
		return o.seed
	}
	return nil
}

// seedInitrd returns the initrd of the seed of a boot.
func (s *Server) seedInitrd(b inband.Boot) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seed := s.offered(b)
	if seed == nil {
		return nil, errNoFile
	}
	return seed.initrd(), nil
}
