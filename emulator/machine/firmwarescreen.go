package machine

import (
	"fmt"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// This file has what the firmware prints on the serial console, unless a BIOS
// setting disables it.

// consoleQuiet reports whether a BIOS setting keeps the firmware off the serial
// console.
func (m *Machine) consoleQuiet() bool {
	_, off := m.fw.View().Acts(firmware.NoConsole, "")
	return off
}

// postTexts holds what each step of POST prints when it begins.
var postTexts = map[Progress]func(m *Machine) []string{
	ProcessorStarted:  banner,
	MemoryStarted:     memoryText,
	ProcessorsStarted: processorText,
	PCIStarted:        cardText,
	HardwareComplete:  driveText,
}

// printPOSTStep prints what a step of POST does.
func (m *Machine) printPOSTStep(step Progress) {
	if text := postTexts[step]; text != nil && !m.consoleQuiet() {
		m.printLines(text(m)...)
	}
}

func banner(m *Machine) []string {
	p := m.profile
	out := []string{
		"\r\n" + joinNonEmpty(p.BIOS.Vendor, "BIOS", p.BIOS.Version, inParentheses(p.BIOS.Date)),
		joinNonEmpty(m.identity.Manufacturer, m.identity.Model),
		"Serial number " + m.identity.Serial + ", UUID " + m.identity.UUID,
	}
	if m.biosBroken() {
		return out[:1] // a broken BIOS gets no further
	}
	return append(out, "F2: set-up  F12: boot from the network")
}

func memoryText(m *Machine) []string {
	d := m.profile.Memory
	if d.Modules == 0 {
		return []string{"Testing memory"}
	}
	return []string{fmt.Sprintf("Testing memory: %d x %d MiB %s, %d MT/s", d.Modules, d.MiB, joinNonEmpty(d.Type, d.Form), d.MHz)}
}

func processorText(m *Machine) []string {
	v := m.settingsView()
	out := []string{fmt.Sprintf("Memory: %d MiB, no errors", m.profile.MemoryMiB)}
	if p := v.Processors(); p.Sockets > 0 {
		out = append(out, fmt.Sprintf("Processors: %d x %s, %d cores and %d threads each", p.Sockets, p.Model, p.Cores, p.Threads))
	}
	return out
}

func cardText(m *Machine) []string {
	var out []string
	for _, c := range m.profile.Cards {
		at := c.PCIAddress
		if f := m.profile.Functions(c); at == "" && len(f) > 0 {
			at = f[0].PCIAddress
		}
		out = append(out, joinNonEmpty("PCI", at, c.Vendor, c.Product))
	}
	for _, n := range m.identity.NICs {
		link := "link down"
		if m.cabling().Linked(n.ID) {
			link = fmt.Sprintf("link up, %d Mb/s", n.SpeedMbps)
		}
		out = append(out, "NIC "+n.Name+" "+n.MAC+": "+link)
	}
	if v := m.settingsView(); v.HasTPM() {
		out = append(out, joinNonEmpty(v.Profile.TPM.Vendor, v.Profile.TPM.Product))
	}
	return out
}

func driveText(m *Machine) []string {
	var out []string
	for _, c := range m.disks.View().Controllers() {
		out = append(out, joinNonEmpty("Storage controller", c.ID, c.Vendor, c.Product))
		for _, d := range c.Drives {
			state := ""
			switch {
			case d.State == storage.DriveFailed:
				state = ": FAILED"
			case d.Predicted:
				state = ": will fail soon"
			}
			out = append(out, fmt.Sprintf("  Bay %d: %s, %s, serial number %s%s", d.Bay, joinNonEmpty(d.Vendor, d.Product), formatCapacity(d.Capacity), d.Serial, state))
		}
		for _, v := range c.Volumes {
			state := "optimal"
			switch {
			case v.Failed:
				state = "FAILED"
			case v.Degraded():
				state = "DEGRADED"
			}
			out = append(out, fmt.Sprintf("  Volume %s: %s, %s, %s", v.ID, v.Name, formatCapacity(v.Size()), state))
		}
	}
	return out
}

// printBootAttempt prints which boot source is tried; the result follows on the
// same line.
func (m *Machine) printBootAttempt(s Source) {
	if !m.consoleQuiet() {
		m.print("Booting from " + m.sourceName(s) + ": ")
	}
}

// defaultFailures are the reasons for a failed boot by kind of source, when no
// other is known.
var defaultFailures = map[SourceKind]string{
	Hdd:         "no boot loader",
	Cd:          "no medium, or none to boot from",
	Usb:         "no medium, or none to boot from",
	Pxe:         "no answer from a boot server",
	UefiHTTP:    "no answer from a boot server",
	RemoteDrive: "no answer from a target",
}

// printBootFailure prints why a source was not booted.
func (m *Machine) printBootFailure(s Source, why string) {
	if m.consoleQuiet() {
		return
	}
	network := s.Kind == Pxe || s.Kind == UefiHTTP
	switch {
	case why != "":
	case network && s.Device != "" && !m.cabling().Linked(s.Device):
		why = "no link"
	case defaultFailures[s.Kind] != "":
		why = defaultFailures[s.Kind]
	default:
		why = "nothing to boot"
	}
	m.printLines(why)
}

// sourceName returns a boot source's name for display.
func (m *Machine) sourceName(s Source) string {
	switch s.Kind {
	case Cd:
		return "virtual CD"
	case Usb:
		return "virtual USB drive"
	case Pxe, UefiHTTP:
		name := map[SourceKind]string{Pxe: "PXE", UefiHTTP: "HTTP"}[s.Kind]
		for _, n := range m.identity.NICs {
			if n.ID == s.Device {
				return joinNonEmpty(name, n.Name, n.MAC, s.URI)
			}
		}
	case Hdd:
		if d, ok := m.disks.View().Drive(s.Device); ok {
			return fmt.Sprintf("drive %d %s %s", d.Bay, d.Product, d.Serial)
		}
	}
	return joinNonEmpty(string(s.Kind), s.Device)
}

// appTitles are the names of the firmware's programs.
var appTitles = map[SourceKind]string{
	BiosSetup: "Set-up", Utilities: "Utilities", Diags: "Diagnostics", UefiShell: "UEFI Interactive Shell",
}

// printFirmwareApp prints that a program of the firmware runs.
func (m *Machine) printFirmwareApp(app SourceKind) {
	if !m.consoleQuiet() {
		m.printLines(appTitles[app] + " of " + joinNonEmpty(m.profile.Manufacturer, m.profile.Model) + " " + m.identity.Serial + ". F10: leave it and restart")
	}
}

// printRetry prints that a boot without bootable source is repeated.
func (m *Machine) printRetry() {
	if !m.consoleQuiet() {
		m.printLines(fmt.Sprintf("Nothing to boot from. Attempt %d follows", m.st.Retries+1))
	}
}

// printNothingBootable prints that no source was bootable.
func (m *Machine) printNothingBootable() {
	if !m.consoleQuiet() {
		m.printLines("Nothing to boot from. Enter: restart")
	}
}

// printUpdate prints that POST waits for a firmware update.
func (m *Machine) printUpdate(hold time.Duration) {
	if hold > 0 && !m.consoleQuiet() {
		m.printLines("Firmware is being updated: do not switch the server off")
	}
}

// settingsView returns as much of a View as the hardware under the current BIOS
// settings needs.
func (m *Machine) settingsView() *View { return &View{Profile: m.profile, Firmware: m.fw.View()} }

// formatCapacity formats a capacity in bytes with decimal units, as drive
// makers do.
func formatCapacity(n int64) string {
	switch {
	case n >= 1e12:
		return fmt.Sprintf("%.2f TB", float64(n)/1e12)
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// joinNonEmpty joins the texts that are not empty by spaces.
func joinNonEmpty(all ...string) string {
	var some []string
	for _, w := range all {
		if w != "" {
			some = append(some, w)
		}
	}
	return strings.Join(some, " ")
}

func inParentheses(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}
