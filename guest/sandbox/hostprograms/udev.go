package hostprograms

import "slices"

// udevadm is udevadm(8) of a server whose devices are all there when it boots: no event is under way,
// and none is left to wait for.
func udevadm(c *Call) int {
	words := c.Args
	for len(words) > 0 && (words[0] == "-d" || words[0] == "--debug") {
		words = words[1:]
	}
	verb := ""
	if len(words) > 0 {
		verb = words[0]
	}
	switch verb {
	case "--version", "-V":
		c.print("252\n")
		return 0
	case "settle", "trigger", "test", "test-builtin":
		return 0
	case "control":
		if !c.mayChange() {
			return c.complain("udevadm: you must be the superuser")
		}
		if !slices.ContainsFunc(words[1:], func(w string) bool { return len(w) > 1 && w[0] == '-' }) {
			return c.complain("udevadm: control needs an option")
		}
		return 0
	case "info", "monitor", "wait", "lock", "hwdb", "verify":
		return c.complain("udevadm: %s is not done here: there is no udev; read /sys", verb)
	}
	return c.complain("udevadm: unknown command '%s': use settle, trigger, control, test or test-builtin", verb)
}
