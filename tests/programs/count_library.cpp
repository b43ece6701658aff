// What a program uses of the C++ library: containers, text, exceptions, files, memory of all sizes. One thread, no clock.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
    std::mt19937_64 draw(7);
    std::vector<std::uint64_t> numbers(rounds * 10);
    for (auto& number : numbers) number = draw() % 5000;
    std::sort(numbers.begin(), numbers.end());

    std::unordered_map<std::string, int> seen;
    std::map<std::uint64_t, std::vector<int>> positions;
    for (std::size_t i = 0; i < numbers.size(); i++) {
        seen[std::to_string(numbers[i] % 97)]++;
        positions[numbers[i]].push_back(static_cast<int>(i));
    }
    int caught = 0;
    for (int i = 0; i < rounds; i++) {
        try {
            if (i % 3 == 0) throw std::runtime_error("third");
            (void)seen.at("none");
        } catch (const std::out_of_range&) {
            caught += 2;
        } catch (const std::exception&) {
            caught += 1;
        }
    }
    {
        std::ofstream out("count_library.txt");
        for (int i = 0; i < rounds; i++) out << i << ' ' << numbers[i] * 0.5 << '\n';
    }
    double sum = 0;
    std::ifstream in("count_library.txt");
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        double number, half;
        words >> number >> half;
        sum += half;
    }
    std::remove("count_library.txt");

    std::smatch found;
    const std::string text = "durability at 250 ns and 64 bytes";
    std::regex_search(text, found, std::regex("([0-9]+) (bytes|ns) and ([0-9]+)"));

    char* block = static_cast<char*>(std::malloc(1000));
    for (std::size_t bytes : {3000u, 90000u, 700000u, 1500000u, 200000u, 50u}) {
        block = static_cast<char*>(std::realloc(block, bytes));
        block[bytes - 1] = 1;
    }
    std::free(block);

    std::printf("%zu words, %zu numbers, %d caught, %.1f, %s\n", seen.size(), positions.size(), caught, sum,
                found.str(3).c_str());
    std::cout << "numbers " << std::hex << numbers[numbers.size() / 2] << std::endl;
    return static_cast<int>(numbers.front() % 7);
}
