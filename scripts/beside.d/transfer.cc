// What scripts/beside asks of ns-3: connections one after the other over one link, each with the bytes of a TLS handshake and a response, without TLS.
//
//     transfer CONNECTIONS MBIT RTT_MS HELLO FLIGHT REQUEST RESPONSE
//
// HELLO, FLIGHT and REQUEST are bytes of the client's first write, of the server's answer to it, and of what the client sends with its Finished; RESPONSE is
// what the server sends then. Prints a line for each connection: nanoseconds from just before it connects until the server's flight is there, and until the
// last byte.
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace ns3;

namespace
{

struct Sizes
{
    uint32_t hello;
    uint32_t flight;
    uint32_t request;
    uint32_t response;
};

Ptr<Node> client;
Address server_address;
Sizes sizes;
uint32_t left;

// Of the connection that is under way.
Time began;
Time shaken;
uint32_t at_client;
uint32_t at_server;

void Begin();

uint32_t
Take(Ptr<Socket> socket)
{
    uint32_t taken = 0;
    while (Ptr<Packet> packet = socket->Recv())
    {
        taken += packet->GetSize();
    }
    return taken;
}

void
Send(Ptr<Socket> socket, uint32_t bytes)
{
    if (socket->Send(Create<Packet>(bytes)) != static_cast<int>(bytes))
    {
        std::fprintf(stderr, "a send buffer does not hold %u bytes\n", bytes);
        std::exit(1);
    }
}

void
ServerReceives(Ptr<Socket> socket)
{
    const uint32_t before = at_server;
    at_server += Take(socket);
    if (before < sizes.hello && at_server >= sizes.hello)
    {
        Send(socket, sizes.flight);
    }
    const uint32_t all = sizes.hello + sizes.request;
    if (before < all && at_server >= all)
    {
        Send(socket, sizes.response);
        socket->Close();
    }
}

void
ClientReceives(Ptr<Socket> socket)
{
    const uint32_t before = at_client;
    at_client += Take(socket);
    if (before < sizes.flight && at_client >= sizes.flight)
    {
        shaken = Simulator::Now();
        Send(socket, sizes.request);
    }
    const uint32_t all = sizes.flight + sizes.response;
    if (before < all && at_client >= all)
    {
        std::printf("%lld %lld\n",
                    static_cast<long long>((shaken - began).GetNanoSeconds()),
                    static_cast<long long>((Simulator::Now() - began).GetNanoSeconds()));
        socket->Close();
        if (--left == 0)
        {
            Simulator::Stop();
        }
        else
        {
            // What closes the connection is out of the way then.
            Simulator::Schedule(Seconds(1), &Begin);
        }
    }
}

void
Connected(Ptr<Socket> socket)
{
    Send(socket, sizes.hello);
}

void
Failed(Ptr<Socket>)
{
    std::fprintf(stderr, "a connection failed\n");
    std::exit(1);
}

void
Accepted(Ptr<Socket> socket, const Address&)
{
    socket->SetRecvCallback(MakeCallback(&ServerReceives));
}

void
Begin()
{
    at_client = 0;
    at_server = 0;
    began = Simulator::Now();
    Ptr<Socket> socket = Socket::CreateSocket(client, TcpSocketFactory::GetTypeId());
    socket->SetConnectCallback(MakeCallback(&Connected), MakeCallback(&Failed));
    socket->SetRecvCallback(MakeCallback(&ClientReceives));
    socket->Connect(server_address);
}

} // namespace

int
main(int argc, char** argv)
{
    if (argc != 8)
    {
        std::fprintf(stderr, "usage: transfer CONNECTIONS MBIT RTT_MS HELLO FLIGHT REQUEST RESPONSE\n");
        return 2;
    }
    const auto number = [argv](int i) { return static_cast<uint32_t>(std::strtoul(argv[i], nullptr, 10)); };
    left = number(1);
    sizes = Sizes{number(4), number(5), number(6), number(7)};

    // Segments, window, buffers and congestion control as Lastbyte's guest has them, and as many acknowledgements as Linux sends while a connection is
    // young, without which the window opens more slowly; the rest is as ns-3 has it.
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(8 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(8 << 20));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));

    NodeContainer nodes(2);
    client = nodes.Get(0);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(std::string(argv[2]) + "Mbps"));
    link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(500 * number(3))));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000p"));
    NetDeviceContainer devices = link.Install(nodes);
    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    // By itself, a CoDel would wait before the link's own queue, and drop.
    TrafficControlHelper().Uninstall(devices);
    server_address = InetSocketAddress(interfaces.GetAddress(1), 443);

    Ptr<Socket> listener = Socket::CreateSocket(nodes.Get(1), TcpSocketFactory::GetTypeId());
    listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), 443));
    listener->Listen();
    listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(), MakeCallback(&Accepted));

    Simulator::Schedule(Seconds(0), &Begin);
    Simulator::Run();
    Simulator::Destroy();
    return 0;
}
