package place

import "net/netip"

func parse4(address string) ([]byte, error) {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return nil, err
	}
	b := ip.As4()
	return b[:], nil
}
